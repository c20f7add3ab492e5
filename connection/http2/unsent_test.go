package http2_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// A request that is called unprocessed, for which it is sent again elsewhere, never
// goes out: not with the batch that waited when the connection failed, and not with
// the last words.
func TestUnprocessedIsNotSent(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	opening := make(chan error, 1)
	fr := xhttp2.NewFramer(theirs, theirs)
	go func() { // ends with the opening
		_, err := io.ReadFull(theirs, make([]byte, len(xhttp2.ClientPreface)))
		for range 2 { // SETTINGS, WINDOW_UPDATE
			_, frameErr := fr.ReadFrame()
			err = errors.Join(err, frameErr)
		}
		opening <- err
	}()
	c := connect(t, ours, http2.Options{})
	// The answer to SETTINGS blocks the way out: only its beginning is read yet.
	begun := make([]byte, 1)
	err := errors.Join(<-opening, fr.WriteSettings())
	if _, readErr := io.ReadFull(theirs, begun); err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	var calls sync.WaitGroup
	var errs [4]error
	for i := range errs {
		s, req := newStream(t, c, terms), request(t, "POST", "http://x.test/")
		calls.Go(func() { errs[i] = post(s, func() error { return s.WriteRequestHeaders(req, 1) }) })
	}
	for c.OnWire() < len(errs) {
		runtime.Gosched()
	}
	fr.WriteRawFrame(xhttp2.FrameContinuation, 0, 1, nil) // a breach
	calls.Wait()
	for _, err := range errs {
		if un := (*wire.UnprocessedError)(nil); !errors.As(err, &un) {
			t.Errorf("error %v, want it unprocessed", err)
		}
	}
	fr = xhttp2.NewFramer(nil, io.MultiReader(bytes.NewReader(begun), theirs))
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		if f.Header().StreamID > 0 {
			t.Errorf("%v was sent", f)
		}
	}
}

// post sends a body of one byte after the head.
func post(s *http2.Stream, head func() error) error {
	err := head()
	if err == nil {
		_, err = s.ReadFrom(strings.NewReader("x"))
	}
	if err == nil {
		err = s.FinishRequest(nil)
	}
	if err == nil {
		_, err = s.ReadResponseHeaders(nil)
	}
	return err
}
