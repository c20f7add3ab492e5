package interceptors_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
)

// gz is s as one member.
func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

// networkBody is a coded body that says how it was used.
type networkBody struct {
	io.Reader
	ended  bool
	closed int
}

func (b *networkBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

func (b *networkBody) Close() error { b.closed++; return nil }

// gzipped is a response in gzip.
func gzipped(body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode:    200,
		Header:        http.Header{"Content-Encoding": {"gzip"}, "Content-Length": {"99"}, "Content-Type": {"text/plain"}},
		ContentLength: 99,
		Body:          body,
	}
}

// answered is resp as the application gets it.
func answered(t testing.TB, resp *http.Response, change ...func(*chain.Config)) *http.Response {
	t.Helper()
	got, err := through(newRequest(t, "GET", "http://a.test/", nil), settings(change...), func(*http.Request) (*http.Response, error) {
		return resp, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestGzipIsDecodedWhereWeAskedForIt(t *testing.T) {
	tests := []struct {
		name     string
		method   string
		header   http.Header
		config   []func(*chain.Config)
		encoding []string
		status   int
		noBody   bool
		decoded  bool
	}{
		{name: "gzip", encoding: []string{"gzip"}, decoded: true},
		{name: "GZip", encoding: []string{"GZip"}, decoded: true},
		{name: "x-gzip", encoding: []string{"x-gzip"}, decoded: true},
		{name: "POST", method: "POST", encoding: []string{"gzip"}, decoded: true},
		{name: "error page", encoding: []string{"gzip"}, status: 500, decoded: true},
		{name: "no encoding"},
		{name: "other", encoding: []string{"br"}},
		{name: "deflate", encoding: []string{"deflate"}},
		{name: "stacked", encoding: []string{"gzip, gzip"}},
		{name: "stacked in two lines", encoding: []string{"gzip", "br"}},
		{name: "HEAD", method: "HEAD", encoding: []string{"gzip"}},
		{name: "304", encoding: []string{"gzip"}, status: 304},
		{name: "204", encoding: []string{"gzip"}, status: 204},
		{name: "101", encoding: []string{"gzip"}, status: 101},
		{name: "no body", encoding: []string{"gzip"}, noBody: true},
		{name: "switched off", encoding: []string{"gzip"}, config: []func(*chain.Config){noGzip}},
		{name: "asked for by the application", encoding: []string{"gzip"}, header: http.Header{"Accept-Encoding": {"gzip"}}},
		{name: "range", encoding: []string{"gzip"}, header: http.Header{"Range": {"bytes=0-5"}}, status: 206},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := newRequest(t, test.method, "http://a.test/", nil)
			req.Header = test.header
			raw := gz("hello")
			network := gzipped(io.NopCloser(strings.NewReader(raw)))
			network.Header["Content-Encoding"] = test.encoding
			if network.StatusCode = test.status; test.status == 0 {
				network.StatusCode = 200
			}
			if test.noBody {
				network.Body, raw = http.NoBody, ""
			}
			header, body := network.Header.Clone(), network.Body
			resp, err := through(req, settings(test.config...), func(*http.Request) (*http.Response, error) { return network, nil })
			if err != nil {
				t.Fatal(err)
			}
			if resp.Request != req {
				t.Error("the response's Request is not the application's")
			}
			content, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			want, wantHeader, length := raw, header, int64(99)
			if test.decoded {
				want, length = "hello", -1
				wantHeader = http.Header{"Content-Type": {"text/plain"}}
			}
			if string(content) != want {
				t.Errorf("body %q, want %q", content, want)
			}
			if diff := cmp.Diff(wantHeader, resp.Header); diff != "" {
				t.Error("header (-want +got):\n" + diff)
			}
			if resp.ContentLength != length || resp.Uncompressed != test.decoded {
				t.Errorf("ContentLength %d, Uncompressed %t", resp.ContentLength, resp.Uncompressed)
			}
			if diff := cmp.Diff(header, network.Header); diff != "" {
				t.Error("the network's header has changed (-want +got):\n" + diff)
			}
			if network.ContentLength != 99 || network.Uncompressed || network.Body != body {
				t.Error("the network response has changed")
			}
		})
	}
}

func TestGzipBodies(t *testing.T) {
	broken := errors.New("connection reset")
	hello := gz("hello")
	badSum := []byte(hello)
	badSum[len(badSum)-8] ^= 1
	badSize := []byte(hello)
	badSize[len(badSize)-1] ^= 1
	tests := []struct {
		name string
		body string
		then error // of the network, instead of an end
		want string
		err  error // io.EOF is nil
		ours bool  // err comes by BodyFailed
	}{
		{name: "empty"},
		{name: "one member", body: hello, want: "hello"},
		{name: "empty member", body: gz("")},
		{name: "members", body: hello + gz("") + gz(" world"), want: "hello world"},
		{name: "junk", body: hello + "JUNK", want: "hello"},
		{name: "zeros", body: hello + strings.Repeat("\x00", 512), want: "hello"},
		{name: "much junk", body: hello + strings.Repeat("junk", 50_000), want: "hello"},
		{name: "almost a member", body: hello + "\x1f\x8b\x07rest", want: "hello"},
		{name: "no gzip", body: "hello", err: gzip.ErrHeader, ours: true},
		{name: "no gzip, short", body: "h", err: gzip.ErrHeader, ours: true},
		{name: "bad checksum", body: string(badSum), want: "hello", err: gzip.ErrChecksum, ours: true},
		{name: "bad size", body: string(badSize), want: "hello", err: gzip.ErrChecksum, ours: true},
		{name: "bad checksum in the second", body: hello + string(badSum), want: "hellohello", err: gzip.ErrChecksum, ours: true},
		{name: "reset at once", then: broken, err: broken},
		{name: "reset in the header", body: hello[:4], then: broken, err: broken},
		{name: "reset in the data", body: hello[:len(hello)-9], then: broken, want: "hello", err: broken},
		{name: "reset in the footer", body: hello[:len(hello)-4], then: broken, want: "hello", err: broken},
		{name: "reset after a member", body: hello, then: broken, want: "hello", err: broken},
		{name: "cut by the peer", body: hello[:len(hello)-4], then: io.ErrUnexpectedEOF, want: "hello", err: io.ErrUnexpectedEOF},
	}
	for _, test := range tests {
		for _, how := range []struct {
			name string
			wrap func(io.Reader) io.Reader
		}{
			{"at once", func(r io.Reader) io.Reader { return r }},
			{"byte by byte", iotest.OneByteReader},
			{"end with data", iotest.DataErrReader},
		} {
			t.Run(test.name+"/"+how.name, func(t *testing.T) {
				end := test.then
				if end == nil {
					end = io.EOF
				}
				body := &networkBody{Reader: how.wrap(io.MultiReader(strings.NewReader(test.body), iotest.ErrReader(end)))}
				resp := answered(t, gzipped(body))
				got, err := io.ReadAll(resp.Body)
				if string(got) != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if !errors.Is(err, test.err) {
					t.Errorf("got error %v, want %v", err, test.err)
				}
				if _, ours := err.(bodyFailure); ours != test.ours {
					t.Errorf("error %v: by BodyFailed %t, want %t", err, ours, test.ours)
				}
				if _, again := resp.Body.Read(make([]byte, 1)); again != err && !(err == nil && again == io.EOF) {
					t.Errorf("then %v", again)
				}
				if end == io.EOF && !body.ended && body.closed == 0 {
					t.Error("the network's body is neither read to its end nor closed")
				}
				resp.Body.Close()
				resp.Body.Close()
				if body.closed != 1 {
					t.Errorf("the network's body was closed %d times", body.closed)
				}
			})
		}
	}
}

// Wherever a stream is cut but between its members, that shows.
func TestGzipCutAnywhere(t *testing.T) {
	first := gz("hello")
	whole := first + gz(" world")
	for i := 1; i < len(whole); i++ {
		resp := answered(t, gzipped(io.NopCloser(strings.NewReader(whole[:i]))))
		got, err := io.ReadAll(resp.Body)
		want := io.ErrUnexpectedEOF
		if i == len(first) {
			want = nil
		}
		if !errors.Is(err, want) || !strings.HasPrefix("hello world", string(got)) {
			t.Errorf("cut after %d of %d: got %q, %v", i, len(whole), got, err)
		}
	}
}

// Nothing is read before the application does.
func TestGzipIsLazy(t *testing.T) {
	body := &networkBody{Reader: iotest.ErrReader(errors.New("read too early"))}
	resp := answered(t, gzipped(body))
	if n, err := resp.Body.Read(nil); n != 0 || err != nil {
		t.Errorf("an empty Read gave %d, %v", n, err)
	}
	if err := resp.Body.Close(); err != nil || body.closed != 1 {
		t.Errorf("Close: %v, closed %d times", err, body.closed)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
		t.Errorf("Read after Close gave %v", err)
	}
}

// What the server flushed can be read before it sends more.
func TestGzipDeliversWhatWasFlushed(t *testing.T) {
	r, w := io.Pipe()
	resp := answered(t, gzipped(r))
	z := gzip.NewWriter(w)
	done := make(chan struct{})
	next := make(chan struct{})
	go func() {
		defer close(done)
		for range 3 {
			io.WriteString(z, "event\n")
			z.Flush()
			<-next
		}
		z.Close()
		w.Close()
	}()
	p := make([]byte, 100)
	for range 3 {
		n, err := resp.Body.Read(p)
		if string(p[:n]) != "event\n" || err != nil {
			t.Errorf("got %q, %v", p[:n], err)
		}
		next <- struct{}{}
	}
	if n, err := resp.Body.Read(p); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v at the end", n, err)
	}
	<-done
	resp.Body.Close()
}

func TestGzipCloseEndsARead(t *testing.T) {
	for _, sent := range []string{"", gz("hello")[:12], gz("hello"), gz("hello") + "\x1f"} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			resp := answered(t, gzipped(r))
			ended := make(chan error)
			go func() {
				_, err := io.ReadAll(resp.Body)
				ended <- err
			}()
			io.WriteString(w, sent)
			synctest.Wait()
			if _, err := resp.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
				t.Errorf("a second Read beside the first gave %v", err)
			}
			resp.Body.Close()
			if err := <-ended; err != http.ErrBodyReadAfterClose {
				t.Errorf("after %q: Read gave %v", sent, err)
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
				t.Errorf("then Read gave %v", err)
			}
		})
	}
}

// Decoders go from body to body; one must never serve two.
func TestGzipDecodersAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := make(chan string)
		const n = 20
		for i := range n {
			want := strings.Repeat(string(rune('a'+i)), 100_000)
			go func() {
				for round := range 10 {
					resp := answered(t, gzipped(io.NopCloser(strings.NewReader(gz(want)))))
					if round%2 == 0 {
						io.CopyN(io.Discard, resp.Body, 10)
						resp.Body.Close()
						continue
					}
					got, err := io.ReadAll(resp.Body)
					if string(got) != want || err != nil {
						results <- "a body got mixed up"
						return
					}
					resp.Body.Close()
				}
				results <- ""
			}()
		}
		for range n {
			if problem := <-results; problem != "" {
				t.Error(problem)
			}
		}
	})
}

// The codec sets the trailer in the response it made.
func TestGzipTrailer(t *testing.T) {
	for _, after := range []string{"", "JUNK"} {
		network := gzipped(nil)
		network.Body = &trailerBody{Reader: strings.NewReader(gz("hello") + after), resp: network}
		resp := answered(t, network)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(http.Header{"X": {"1"}}, resp.Trailer); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", after, diff)
		}
	}
}

type trailerBody struct {
	io.Reader
	resp *http.Response
}

func (b *trailerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.resp.Trailer = http.Header{"X": {"1"}}
	}
	return n, err
}

func (b *trailerBody) Close() error { _, err := io.Copy(io.Discard, b); return err }
