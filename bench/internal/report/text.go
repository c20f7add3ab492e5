package report

import (
	"fmt"
	"io"
)

// WriteRun writes a whole run for a terminal.
func WriteRun(w io.Writer, r *Result) error {
	if err := WriteHead(w, r); err != nil {
		return err
	}
	for _, c := range r.Cells {
		if err := WriteCell(w, c); err != nil {
			return err
		}
	}
	return WriteVerdicts(w, r)
}

// WriteHead writes what was measured with what.
func WriteHead(w io.Writer, r *Result) error {
	_, err := fmt.Fprintln(w, r.head())
	return err
}

// WriteCell writes one cell's table.
func WriteCell(w io.Writer, c Cell) error {
	if _, err := fmt.Fprintf(w, "\n%s\n", title(c.Cell)); err != nil {
		return err
	}
	return WriteText(w, c.Table())
}

// WriteVerdicts writes how the targets came out.
func WriteVerdicts(w io.Writer, r *Result) error {
	verdicts := r.Judged()
	if len(verdicts) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "\nTargets"); err != nil {
		return err
	}
	return WriteText(w, VerdictTable(verdicts))
}
