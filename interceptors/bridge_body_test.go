package interceptors_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/internal/lifetime"
)

// closeCounter counts how often a body is closed.
type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

func TestBridgeFramesTheBody(t *testing.T) {
	type frame struct {
		Length int64
		TE     []string
		Body   string // "none" for nil
		GetIt  bool
	}
	text := func(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
	chunked := []string{"chunked"}
	tests := []struct {
		name   string
		method string
		body   io.ReadCloser
		length int64
		te     []string
		want   frame
	}{
		{name: "none", want: frame{Body: "none"}},
		{name: "none, chunked", te: chunked, want: frame{Body: "none"}},
		{name: "NoBody", body: http.NoBody, want: frame{Body: "none"}},
		{name: "NoBody with a length", body: http.NoBody, length: 5, want: frame{Body: "none"}},
		{name: "known", body: text("hello"), length: 5, want: frame{Length: 5, Body: "hello", GetIt: true}},
		{name: "unknown", body: text("hello"), want: frame{Length: -1, TE: chunked, Body: "hello", GetIt: true}},
		{name: "unknown and long", body: text(strings.Repeat("hello", 1000)), want: frame{Length: -1, TE: chunked, Body: strings.Repeat("hello", 1000), GetIt: true}},
		{name: "unknown byte by byte", body: io.NopCloser(iotest.OneByteReader(strings.NewReader("hello"))), want: frame{Length: -1, TE: chunked, Body: "hello", GetIt: true}},
		{name: "unknown with end", body: io.NopCloser(iotest.DataErrReader(strings.NewReader("hello"))), want: frame{Length: -1, TE: chunked, Body: "hello", GetIt: true}},
		{name: "unknown and empty", body: text(""), want: frame{Body: "none"}},
		{name: "GET with a body", method: "GET", body: text("hello"), want: frame{Length: -1, TE: chunked, Body: "hello", GetIt: true}},
		{name: "GET with an empty body", method: "GET", body: text(""), want: frame{Body: "none"}},
		{name: "-1", body: text(""), length: -1, want: frame{Length: -1, TE: chunked, GetIt: true}},
		{name: "known and chunked", body: text("hello"), length: 5, te: chunked, want: frame{Length: -1, TE: chunked, Body: "hello", GetIt: true}},
		{name: "known and identity", body: text("hello"), length: 5, te: []string{"identity"}, want: frame{Length: 5, Body: "hello", GetIt: true}},
		{name: "empty and chunked", body: text(""), te: chunked, want: frame{Length: -1, TE: chunked, GetIt: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = "POST"
			}
			req := newRequest(t, method, "http://a.test/", nil)
			req.Body, req.ContentLength, req.TransferEncoding = test.body, test.length, test.te
			req.GetBody = func() (io.ReadCloser, error) { return text("again"), nil }
			network := bridged(t, req, settings())
			got := frame{Length: network.ContentLength, TE: network.TransferEncoding, Body: "none", GetIt: network.GetBody != nil}
			if network.Body != nil {
				content, err := io.ReadAll(iotest.HalfReader(network.Body))
				if err != nil {
					t.Error(err)
				}
				got.Body = string(content)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
			if req.ContentLength != test.length || req.Body != test.body {
				t.Error("the application's request has changed")
			}
		})
	}
}

func TestBridgeClosesAnEmptyBodyOnce(t *testing.T) {
	body := &closeCounter{Reader: strings.NewReader("")}
	req := newRequest(t, "POST", "http://a.test/", body)
	bridged(t, req, settings())
	if body.closed != 1 {
		t.Errorf("closed %d times, want once", body.closed)
	}
}

func TestBridgeLeavesAFullBodyOpen(t *testing.T) {
	body := &closeCounter{Reader: strings.NewReader("x")}
	network := bridged(t, newRequest(t, "POST", "http://a.test/", body), settings())
	if body.closed != 0 {
		t.Errorf("closed %d times, want never", body.closed)
	}
	network.Body.Close()
	network.Body.Close()
	if body.closed != 1 {
		t.Errorf("closed %d times, want once", body.closed)
	}
}

func TestBridgeReportsABodyThatFails(t *testing.T) {
	broken := errors.New("disk on fire")
	body := &closeCounter{Reader: iotest.ErrReader(broken)}
	_, err := through(newRequest(t, "POST", "http://a.test/", body), settings(), notSent(t))
	var own *connection.RequestBodyError
	if !errors.As(err, &own) || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if body.closed != 1 {
		t.Errorf("closed %d times, want once", body.closed)
	}
}

func notSent(t *testing.T) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		t.Error("sent")
		return nil, errors.New("sent")
	}
}

// A body that says nothing for a while is not empty, and loses no byte.
func TestBridgeDoesNotWaitForASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var writer sync.WaitGroup
		writer.Go(func() {
			time.Sleep(time.Minute)
			io.WriteString(w, "hello")
			w.Close()
		})
		start := time.Now()
		network := bridged(t, newRequest(t, "POST", "http://a.test/", r), settings())
		if waited := time.Since(start); waited > 100*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		if network.ContentLength != -1 {
			t.Errorf("ContentLength is %d", network.ContentLength)
		}
		content, err := io.ReadAll(network.Body)
		if string(content) != "hello" || err != nil {
			t.Errorf("got %q, %v", content, err)
		}
		writer.Wait()
	})
}

func TestBridgeDoesNotWaitWhereTheSizeIsSaidToBeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		req := newRequest(t, "POST", "http://a.test/", r)
		req.ContentLength = -1
		start := time.Now()
		bridged(t, req, settings())
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestBridgeStopsWaitingForABodyWhenTheCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", "http://a.test/", r)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = through(req, settings(), notSent(t))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited != time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		if _, err := w.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("the body is not closed: %v", err)
		}
	})
}

// An interceptor may have put another context in the place of the call's.
func TestBridgeStopsWaitingForABodyWhenTheCallOfAnotherContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var life lifetime.Context
		life.Init(t.Context(), nil)
		time.AfterFunc(time.Millisecond, func() { life.Cancel() })
		start := time.Now()
		_, err := throughOf(&life, newRequest(t, "POST", "http://a.test/", r), settings(), notSent(t))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited != time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		if _, err := w.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("the body is not closed: %v", err)
		}
	})
}

// A body closed while its first bytes are awaited ends the Read that waits.
func TestBridgeBodyIsClosedBesideItsFirstRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		network := bridged(t, newRequest(t, "POST", "http://a.test/", r), settings())
		go func() {
			time.Sleep(time.Second)
			network.Body.Close()
		}()
		n, err := network.Body.Read(make([]byte, 10))
		if n != 0 || err != io.ErrClosedPipe {
			t.Errorf("got %d, %v", n, err)
		}
	})
}
