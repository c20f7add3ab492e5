package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocs holds docs/command.md to the options and exit codes there are.
func TestDocs(t *testing.T) {
	content, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	escape := strings.NewReplacer("|", `\|`, "*", `\*`).Replace
	var want []string
	for _, f := range flags {
		name := "--" + f.long
		if f.short != 0 {
			name = fmt.Sprintf("-%c, %s", f.short, name)
		}
		if f.value != "" {
			name += " " + f.value
		}
		want = append(want, fmt.Sprintf("| `%s` | %s |", name, escape(f.help)))
	}
	for _, e := range exitCodes {
		want = append(want, fmt.Sprintf("| %d | %s |", e.code, escape(e.means)))
	}
	has := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(content)) {
		has[strings.TrimSpace(line)] = true
		if strings.HasPrefix(line, "| `-") || strings.HasPrefix(line, "| ") && line[2] >= '0' && line[2] <= '9' {
			rows++
		}
	}
	for _, row := range want {
		if !has[row] {
			t.Errorf("docs/command.md lacks the row\n%s", row)
		}
	}
	if rows != len(want) {
		t.Errorf("docs/command.md has %d rows of options and exit codes, want %d", rows, len(want))
	}
}
