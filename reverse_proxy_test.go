package catena_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
)

// behindProxy puts an httputil.ReverseProxy, whose transport is the world's
// client, in front of the world's servers. It returns a client of net/http for
// whose calls the proxy is the server.
func (w *world) behindProxy() *http.Client {
	w.Helper()
	target, err := url.Parse(w.url(origin, ""))
	if err != nil {
		w.Fatal(err)
	}
	// ReverseProxy holds a mutex while it writes, and a bubble's clock stands still
	// for who waits for that: nothing in front of it may take time.
	front := simnet.New()
	l, err := front.Listen("192.0.2.9:80")
	if err != nil {
		w.Fatal(err)
	}
	srv := &http.Server{ErrorLog: discardLog, Handler: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: w.client.RoundTripper(),
		ErrorLog:  discardLog,
	}}
	go srv.Serve(l) // ends with Close
	transport := &http.Transport{DialContext: front.DialContext, DisableCompression: true}
	w.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		front.Close()
	})
	return &http.Client{Transport: transport}
}

// through is a request to the proxy.
func (w *world) through(method, path string, body io.Reader) *http.Request {
	w.Helper()
	return w.requestTo(method, "http://192.0.2.9"+path, body)
}

func TestReverseProxyPassesMessagesOn(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Link", "</style.css>")
			rw.WriteHeader(http.StatusEarlyHints)
			rw.Header().Set("Trailer", "X-Sum")
			body, err := io.ReadAll(r.Body)
			rw.Header().Set("X-Saw", r.Method+" "+r.URL.RequestURI()+" "+string(body))
			if err != nil {
				rw.WriteHeader(http.StatusInternalServerError)
			}
			io.WriteString(rw, "abc")
			rw.(http.Flusher).Flush() // no Content-Length
			rw.Header().Set("X-Sum", "3")
			rw.Header().Set(http.TrailerPrefix+"X-Undeclared", "4")
		})
		client := w.behindProxy()
		req := w.through("POST", "/a%2Fb?q=1", bodyOf("Hello"))
		var interim []int
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				interim = append(interim, code)
				return nil
			},
		}))
		resp, err := client.Do(req)
		if got := w.slurp(resp, err); got != "abc" {
			w.Errorf("body %q", got)
		}
		if got := resp.Header.Get("X-Saw"); got != "POST /a%2Fb?q=1 Hello" {
			w.Errorf("the server saw %q", got)
		}
		want := http.Header{"X-Sum": {"3"}, "X-Undeclared": {"4"}}
		if diff := cmp.Diff(want, resp.Trailer); diff != "" {
			w.Errorf("trailers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{http.StatusEarlyHints}, interim); diff != "" {
			w.Errorf("interim responses (-want +got):\n%s", diff)
		}
	})
}

func TestReverseProxyCarriesLargeBodies(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/refuse" {
				rw.Header().Set("Connection", "close")
				rw.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			rw.Write(body)
		})
		client := w.behindProxy()
		large := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
		for _, body := range []io.Reader{strings.NewReader(large), bodyOf(large)} {
			resp, err := client.Do(w.through("POST", "/", body))
			if got := w.slurp(resp, err); got != large {
				w.Errorf("%d bytes came back of %d", len(got), len(large))
			}
		}
		resp, err := client.Do(w.through("POST", "/refuse", bodyOf(large)))
		if w.slurp(resp, err); resp.StatusCode != http.StatusRequestEntityTooLarge {
			w.Errorf("an early answer came as %s", resp.Status)
		}
	})
}

func TestReverseProxyStreamsWithoutDelay(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			for range 5 {
				io.WriteString(rw, "data: tick\n\n")
				rw.(http.Flusher).Flush()
				time.Sleep(time.Minute)
			}
		})
		began := time.Now()
		resp, err := w.behindProxy().Do(w.through("GET", "/", nil))
		if err != nil {
			w.Fatal(err)
		}
		defer resp.Body.Close()
		var at []time.Duration
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if lines.Text() != "" {
				at = append(at, time.Since(began).Round(time.Minute))
			}
		}
		want := []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute}
		if diff := cmp.Diff(want, at); diff != "" {
			w.Errorf("arrivals (-want +got):\n%s", diff)
		}
	}, catena.WithReadTimeout(0))
}

func TestReverseProxyEndsWhatItsClientGivesUp(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		ended := make(chan time.Time, 1)
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
			ended <- time.Now()
		})
		ctx, cancel := context.WithCancel(w.Context())
		resp, err := w.behindProxy().Do(w.through("GET", "/", nil).WithContext(ctx))
		if err != nil {
			w.Fatal(err)
		}
		gaveUp := time.Now()
		cancel()
		resp.Body.Close()
		synctest.Wait()
		if took := (<-ended).Sub(gaveUp); took > 10*latency {
			w.Errorf("the origin was told after %v", took)
		}
	})
}

func TestReverseProxyCarriesAnUpgrade(t *testing.T) {
	overProtocols(t, onHTTP1, func(w *world) {
		w.serve(echoOnUpgrade)
		resp, err := w.behindProxy().Do(upgradeRequest(w.through("GET", "/", nil)))
		if err != nil {
			w.Fatal(err)
		}
		if resp.StatusCode != http.StatusSwitchingProtocols {
			w.Fatalf("status %s", resp.Status)
		}
		stream := resp.Body.(io.ReadWriteCloser)
		for _, text := range []string{"one", "two", strings.Repeat("long ", 100_000)} {
			go io.WriteString(stream, text) // ends with the last byte
			got := make([]byte, len(text))
			if _, err := io.ReadFull(stream, got); err != nil || string(got) != text {
				w.Errorf("echo of %d bytes differs, %v", len(text), err)
			}
			time.Sleep(time.Hour) // no timeout is left
		}
		stream.Close()
		synctest.Wait()
		time.Sleep(time.Second)
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left in the pool", n)
		}
	})
}

// upgradeRequest asks for the echo protocol.
func upgradeRequest(req *http.Request) *http.Request {
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	return req
}

// echoOnUpgrade says everything twice, the second time in HTTP no longer. It
// half-closes after the peer.
func echoOnUpgrade(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "echo" {
		io.WriteString(rw, "plain")
		return
	}
	rw.Header().Set("Connection", "Upgrade")
	rw.Header().Set("Upgrade", "echo")
	rw.WriteHeader(http.StatusSwitchingProtocols)
	c, buffered, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	buffered.Flush()
	if _, err := io.Copy(c, buffered); err == nil {
		io.WriteString(c, "bye")
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	} else if !errors.Is(err, net.ErrClosed) {
		return
	}
}
