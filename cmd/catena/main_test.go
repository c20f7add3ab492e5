package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// asCommand is the environment variable that makes this binary the command, for
// the tests that need a process of its own.
const asCommand = "CATENA_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// result is what a run of the command left behind.
type result struct {
	code           int
	stdout, stderr string
}

// catenaRun runs the command without a proxy of the environment's.
func catenaRun(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append([]string{"-x", ""}, args...), strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// runTo is catenaRun with an output of its own.
func runTo(ctx context.Context, stdout io.Writer, args ...string) (code int, stderr string) {
	var errs bytes.Buffer
	code = run(ctx, append([]string{"-x", ""}, args...), strings.NewReader(""), stdout, &errs)
	return code, errs.String()
}

// terminal is a buffer that passes for one.
type terminal struct{ bytes.Buffer }

func (*terminal) IsTerminal() bool { return true }
