package measure

import "slices"

// Median is the middle of values, the mean of the two middle ones where their
// number is even, and 0 of none. It leaves values as they are.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Ratio is a/b, and 0 where b is 0: there is nothing to compare.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
