package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// TestProcess runs the command as a process and interrupts it, as Ctrl-C does,
// when the server has its request.
func TestProcess(t *testing.T) {
	arrived := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hello" {
			io.WriteString(w, "hello")
			return
		}
		arrived <- struct{}{}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			<-r.Context().Done()
		}
	})
	tests := []struct {
		name      string
		args      []string
		interrupt bool
		want      result
	}{
		{"to its end", []string{s.URL + "/hello"}, false, result{stdout: "hello"}},
		{"interrupted", []string{s.URL + "/slow"}, true, result{code: exitInterrupted, stderr: "catena: (130) interrupted\n"}},
		{"interrupted while input is missing", []string{"-T", "-", s.URL + "/slow"}, true,
			result{code: exitInterrupted}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-x", ""}, tt.args...)...)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.interrupt {
				io.WriteString(input, "some")
				<-arrived
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			cmd.Wait()
			got := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
			if tt.want.stderr == "" && tt.interrupt {
				got.stderr = "" // whether the call ends in time to say so depends on the system's input
			}
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
