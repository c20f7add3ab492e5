package main

import (
	"bytes"
	"context"
	stdflag "flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = stdflag.Bool("update", false, "write the golden files anew")

// TestDemo compares the demo's output, times and ports aside.
func TestDemo(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"demo"}, strings.NewReader(""), &stdout, &stderr)
	if code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit code %d, errors %q", code, &stderr)
	}
	got, canceled := withoutCanceled(normal(stdout.String()))
	if canceled != 1 {
		t.Errorf("%d events Canceled, want 1", canceled)
	}
	golden(t, "testdata/demo.txt", got)
}

func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"demo"}, strings.NewReader(""), io.Discard, io.Discard); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", name, diff)
	}
}

var (
	timePattern       = regexp.MustCompile(` *\d+\.\d\d ms`)
	portPattern       = regexp.MustCompile(`:\d{4,5}\b`)
	connectionPattern = regexp.MustCompile(`connection \d+`)
	refusedPattern    = regexp.MustCompile(`dial tcp .*`)
)

// normal is a text without what differs from run to run: times, ports, the
// numbers of connections, and how the system says that an address is dead.
func normal(text string) string {
	text = timePattern.ReplaceAllStringFunc(text, func(s string) string {
		return fmt.Sprintf("%*s", max(len(s), len("0.00 ms")), "0.00 ms")
	})
	text = refusedPattern.ReplaceAllString(text, "dial tcp: refused")
	text = numbered(text, portPattern, ":port%d")
	return numbered(text, connectionPattern, "connection %d")
}

// numbered replaces each distinct match by its number in the order of
// appearance.
func numbered(text string, pattern *regexp.Regexp, format string) string {
	seen := map[string]int{}
	return pattern.ReplaceAllStringFunc(text, func(s string) string {
		if seen[s] == 0 {
			seen[s] = len(seen) + 1
		}
		return fmt.Sprintf(format, seen[s])
	})
}

// withoutCanceled takes the events Canceled out, which come from another
// goroutine and so anywhere, and counts them.
func withoutCanceled(text string) (rest string, n int) {
	lines := strings.SplitAfter(text, "\n")
	for _, line := range lines {
		if strings.HasSuffix(line, " Canceled\n") {
			n++
			continue
		}
		rest += line
	}
	return rest, n
}
