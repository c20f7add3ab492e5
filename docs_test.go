package catena_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// pages are the module's pages: Markdown by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(p) == ".md" {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			found[p] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors are the names of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return found
}

// TestDocsLinks: what a page links to is there, page and heading.
func TestDocsLinks(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		text = codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", name, m[1], target)
			}
		}
	}
}

// TestDocsReachable: the README leads to every page under docs.
func TestDocsReachable(t *testing.T) {
	readme := pages(t)["README.md"]
	for name := range pages(t) {
		if filepath.Dir(name) == "docs" && !strings.Contains(readme, "("+filepath.ToSlash(name)) {
			t.Errorf("README.md does not link to %s", name)
		}
	}
}

// TestDocsPrograms runs the programs and tests on the pages: the blocks of Go that
// begin with a package clause.
func TestDocsPrograms(t *testing.T) {
	for name, text := range pages(t) {
		for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
			if m[1] != "go" || !strings.HasPrefix(m[2], "package ") {
				continue
			}
			file, command := "main.go", "run"
			if !strings.HasPrefix(m[2], "package main\n") {
				file, command = "page_test.go", "test"
			}
			file = filepath.Join(t.TempDir(), file)
			if err := os.WriteFile(file, []byte(m[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			// A file outside the module imports what the module here has.
			if out, err := exec.CommandContext(t.Context(), "go", command, file).CombinedOutput(); err != nil {
				t.Errorf("%s: go %s: %v\n%s\n%s", name, command, err, out, m[2])
			} else {
				t.Logf("%s: %s", name, out)
			}
		}
	}
}
