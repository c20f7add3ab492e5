package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

// The arguments that make this program a child of itself.
const (
	ClientArg = "client" // reads a workload.Spec, writes a measure.Sample
	ServerArg = "server" // servers.ServeGo
)

// Child is the program as the child that arg says; ok is false where arg is none.
func Child(arg string, in io.Reader, out io.Writer) (ok bool, err error) {
	switch arg {
	case ServerArg:
		return true, servers.ServeGo(in, out)
	case ClientArg:
		var spec workload.Spec
		if err := json.NewDecoder(in).Decode(&spec); err != nil {
			return true, err
		}
		s, err := workload.Run(spec)
		if err != nil {
			return true, err
		}
		return true, json.NewEncoder(out).Encode(s)
	}
	return false, nil
}

// runChild runs one client process to its end.
func runChild(ctx context.Context, exe string, spec workload.Spec) (s measure.Sample, err error) {
	in, err := json.Marshal(spec)
	if err != nil {
		return s, err
	}
	cmd := exec.CommandContext(ctx, exe, ClientArg)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return s, fmt.Errorf("%s, %s with %d callers by %s: %w: %s",
			spec.Work, spec.Proto, spec.Callers, spec.Client, err, bytes.TrimSpace(errs.Bytes()))
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("the client process %s printed no sample: %w", spec.Client, err)
	}
	return s, nil
}
