package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/catena-http/catena/bench/internal/plan"
)

// The lines between which performance.md is generated.
const (
	beginMark = "<!-- bench:begin: written by make bench-docs -->"
	endMark   = "<!-- bench:end -->"
)

// WriteDocs writes the run into the documentation in dir: its tables into
// performance.md between the marks, its charts and figures into performance/.
func WriteDocs(dir string, r *Result) error {
	folder := filepath.Join(dir, "performance")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n\n", r.head())
	if verdicts := r.Judged(); len(verdicts) > 0 {
		text.WriteString("### Targets\n\n")
		WriteMarkdown(&text, VerdictTable(verdicts))
		text.WriteString("\n")
	}
	for _, work := range plan.Works() {
		if err := r.section(&text, folder, work); err != nil {
			return err
		}
	}
	if err := r.Save(filepath.Join(folder, "results.json")); err != nil {
		return err
	}
	return replaceMarked(filepath.Join(dir, "performance.md"), text.String())
}

// section writes a work's charts into folder, and its tables with links to them.
func (r *Result) section(text *bytes.Buffer, folder, work string) error {
	cells := r.cellsOf(work, "")
	if len(cells) == 0 {
		return nil
	}
	fmt.Fprintf(text, "### %s\n\n", works[work])
	for _, d := range r.drawings(work) {
		var svg bytes.Buffer
		if err := d.chart.Write(&svg); err != nil {
			return err
		}
		name := d.name + ".svg"
		if err := os.WriteFile(filepath.Join(folder, name), svg.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(text, "![%s](performance/%s)\n\n", d.chart.Title, name)
	}
	for _, c := range cells {
		fmt.Fprintf(text, "**%s**\n\n", title(c.Cell))
		WriteMarkdown(text, c.Table())
		text.WriteString("\n")
	}
	return nil
}

// replaceMarked replaces what stands between the marks of the file.
func replaceMarked(name, text string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(b), beginMark)
	_, tail, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return fmt.Errorf("%s has not both lines %q and %q", name, beginMark, endMark)
	}
	return os.WriteFile(name, []byte(head+beginMark+"\n\n"+strings.TrimSpace(text)+"\n\n"+endMark+tail), 0o644)
}
