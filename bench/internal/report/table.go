package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/workload"
)

// column is a column of a cell's table.
type column struct {
	head string
	text func(Row) string
}

var (
	clientColumn = column{"client", func(r Row) string { return r.Client }}
	cpuColumn    = column{"CPU a request", func(r Row) string { return micros(r.Median.CPU) }}
	allocsColumn = column{"allocs a request", func(r Row) string { return number(r.Median.Allocs) }}
	p50Column    = column{"p50", func(r Row) string { return micros(r.Median.P50) }}
	p99Column    = column{"p99", func(r Row) string { return micros(r.Median.P99) }}
	cpuRatio     = column{"CPU: catena ÷ it", func(r Row) string { return ratio(r.CPURatio) }}
)

// primary is what a cell is about.
func primary(c plan.Cell) plan.Metric {
	if c.Work == workload.Idle {
		return plan.Memory
	}
	return plan.Rate
}

// columns are those of the cell's work.
func columns(c plan.Cell) []column {
	rate := func(head string, of func(measure.Sample) float64) []column {
		return []column{
			clientColumn,
			{head, func(r Row) string { return number(of(r.Median)) }},
			{"catena ÷ it", func(r Row) string { return ratio(r.Ratio) }},
		}
	}
	switch c.Work {
	case workload.Idle:
		return append(rate("bytes a connection", func(s measure.Sample) float64 { return s.Memory }),
			column{"goroutines a connection", func(r Row) string { return fmt.Sprintf("%.1f", r.Median.Goroutines) }})
	case workload.Download, workload.Upload:
		return append(rate("MiB/s", throughput), p50Column, cpuColumn, cpuRatio, allocsColumn)
	default:
		return append(rate("requests/s", measure.Sample.Rate), p50Column, p99Column, cpuColumn, cpuRatio, allocsColumn)
	}
}

// throughput is in MiB a second.
func throughput(s measure.Sample) float64 { return s.Rate() * float64(s.Body) / (1 << 20) }

// Table is the cell's table: a row of heads, then one for each client.
func (c Cell) Table() [][]string {
	cols := columns(c.Cell)
	head := make([]string, len(cols))
	for i, col := range cols {
		head[i] = col.head
	}
	table := [][]string{head}
	for _, r := range c.Rows {
		line := make([]string, len(cols))
		for i, col := range cols {
			line[i] = col.text(r)
		}
		table = append(table, line)
	}
	return table
}

// WriteText writes the table for a terminal, the first column to the left and the
// others to the right.
func WriteText(w io.Writer, table [][]string) error {
	widths := widths(table)
	for _, line := range table {
		var b strings.Builder
		for i, text := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if i == 0 {
				b.WriteString("  " + text + pad)
			} else {
				b.WriteString("  " + pad + text)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// WriteMarkdown writes the table for the documentation.
func WriteMarkdown(w io.Writer, table [][]string) error {
	for i, line := range table {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | ")); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(line)-1))
		}
	}
	return nil
}

func widths(table [][]string) []int {
	w := make([]int, len(table[0]))
	for _, line := range table {
		for i, text := range line {
			w[i] = max(w[i], utf8.RuneCountInString(text))
		}
	}
	return w
}

// number has three digits that tell, and thousands in groups.
func number(v float64) string {
	switch {
	case v <= 0:
		return "-"
	case v < 9.95:
		return fmt.Sprintf("%.2f", v)
	case v < 99.5:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// micros is a time that is given in microseconds.
func micros(v float64) string {
	switch {
	case v <= 0:
		return "-"
	case v < 1000:
		return number(v) + " µs"
	default:
		return number(v/1000) + " ms"
	}
}

func ratio(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}
