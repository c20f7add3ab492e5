package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// openOutput opens what the nth URL's response is written to. It is opened when
// there is something to write: a call that fails leaves an old file alone.
func (c *command) openOutput(n int, u *url.URL) (io.WriteCloser, error) {
	var o output
	if n < len(c.options.outputs) {
		o = c.options.outputs[n]
	}
	var w io.WriteCloser
	var err error
	switch {
	case o.remote:
		w, err = createHere(lastSegment(u))
	case o.name != "" && o.name != "-":
		w, err = os.Create(o.name)
	case o.name == "" && isTerminal(c.stdout):
		w = &textOnly{w: c.stdout}
	default:
		w = unclosed{c.stdout}
	}
	if err != nil {
		return nil, fail(exitWriteError, err)
	}
	return w, nil
}

// toFile reports whether the nth URL's response does not go to standard output.
func (c *command) toFile(n int) bool {
	return n < len(c.options.outputs) && c.options.outputs[n].name != "-"
}

// lastSegment is the end of the URL's path as it is written there, undecoded: a
// separator can't hide in it.
func lastSegment(u *url.URL) string {
	path := u.EscapedPath()
	return path[strings.LastIndexByte(path, '/')+1:]
}

// createHere creates a file in the current folder and nowhere else, whatever
// links there are.
func createHere(name string) (io.WriteCloser, error) {
	switch {
	case name == "":
		return nil, errors.New("the URL ends without a file name: name one by -o")
	case name == "." || name == ".." || strings.ContainsAny(name, `/\:`):
		return nil, fmt.Errorf("%q is no name for a file in this folder: name one by -o", name)
	}
	folder, err := os.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Create(name)
}

// unclosed is standard output, which several responses are written to.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

var errBinary = errors.New("the body is binary and would garble the terminal: write it to a file by -o FILE, or here all the same by -o -")

// textOnly writes to a terminal what is no binary.
type textOnly struct{ w io.Writer }

func (t *textOnly) Write(p []byte) (int, error) {
	if bytes.IndexByte(p, 0) >= 0 {
		return 0, errBinary
	}
	return t.w.Write(p)
}

func (t *textOnly) Close() error { return nil }

// isTerminal reports whether a person may look at w.
func isTerminal(w io.Writer) bool {
	if t, ok := w.(interface{ IsTerminal() bool }); ok {
		return t.IsTerminal()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
