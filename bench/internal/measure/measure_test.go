package measure

import (
	"math"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := Median(test.values); got != test.want {
			t.Errorf("Median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
	values := []float64{2, 1}
	Median(values)
	if values[0] != 2 {
		t.Error("Median sorted its argument")
	}
}

func TestRatioOfNothing(t *testing.T) {
	if got := Ratio(1, 0); got != 0 {
		t.Errorf("Ratio(1, 0) = %v, want 0", got)
	}
	if got := Ratio(3, 2); got != 1.5 {
		t.Errorf("Ratio(3, 2) = %v, want 1.5", got)
	}
}

// Every duration's bucket holds it and lies at most 1/64 off, over the whole
// range.
func TestHistogramResolution(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 63, 64, 127, 128, 129, 1000, 65535, time.Millisecond, time.Hour, math.MaxInt64} {
		var h Histogram
		h.Add(d)
		got := h.Quantile(0.5)
		if off := math.Abs(float64(got - d)); off > float64(d)/64 {
			t.Errorf("%d is told as %d", d, got)
		}
	}
	for v := uint64(1); v < 1<<20; v++ {
		if bucket(v) < bucket(v-1) {
			t.Fatalf("bucket(%d) = %d, before bucket(%d) = %d", v, bucket(v), v-1, bucket(v-1))
		}
	}
}

func TestHistogramQuantiles(t *testing.T) {
	var a, b Histogram
	for i := range 100 {
		h := &a
		if i%2 == 0 {
			h = &b
		}
		h.Add(time.Duration(i + 1))
	}
	a.Merge(&b)
	if a.Count() != 100 {
		t.Fatalf("Count = %d, want 100", a.Count())
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := a.Quantile(q); got != want {
			t.Errorf("Quantile(%v) = %d, want %d", q, got, want)
		}
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("an empty histogram's median is %d, want 0", got)
	}
}

func TestMerge(t *testing.T) {
	got := Merge([]Sample{
		{Requests: 100, Seconds: 1, P50: 7, CPU: 3, Body: 9},
		{Requests: 900, Seconds: 2, P50: 5, CPU: 1, Body: 9},
		{Requests: 300, Seconds: 1, P50: 6, CPU: 2, Body: 9},
	})
	if rate := got.Rate(); math.Abs(rate-300) > 1e-6 {
		t.Errorf("rate = %v, want 300", rate)
	}
	if got.P50 != 6 || got.CPU != 2 || got.Body != 9 {
		t.Errorf("merged to %+v", got)
	}
	if got := Merge(nil); got != (Sample{}) {
		t.Errorf("Merge(nil) = %+v", got)
	}
}
