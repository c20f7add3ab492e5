package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/catena-http/catena/bench/internal/client"
)

// GoServer is a running net/http server, a process of its own.
type GoServer struct {
	*process
	Addrs Addrs
}

// StartGoServer starts exe with args, which must lead to ServeGo. It ends with
// Stop, with ctx, and with this process.
func StartGoServer(ctx context.Context, f Files, exe string, args ...string) (*GoServer, error) {
	cmd := pinned(ctx, runtime.NumCPU(), append([]string{exe}, args...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	cmd.Stdout = w
	p, err := start(cmd, stdin.Close)
	w.Close() // the child has its own
	if err != nil {
		return nil, err
	}
	s := &GoServer{process: p}
	if err = json.NewEncoder(stdin).Encode(f); err == nil {
		err = json.NewDecoder(stdout).Decode(&s.Addrs)
	}
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("the Go server: %w", err)
	}
	return s, nil
}

// ServeGo is the server process: it reads Files from in, writes its Addrs to out
// as a line of JSON and serves until in ends.
func ServeGo(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var f Files
	if err := json.Unmarshal(line, &f); err != nil {
		return err
	}
	addrs, stop, err := Serve(f)
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(out).Encode(addrs); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return err
}

// Serve serves all protocols in this process until stop is called.
func Serve(f Files) (addrs Addrs, stop func(), err error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, nil, err
	}
	var running []*http.Server
	stop = func() {
		for _, s := range running {
			s.Close()
		}
	}
	addrs = Addrs{}
	for _, proto := range client.Protocols() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, nil, err
		}
		addrs[proto] = l.Addr().String()
		s := newServer(proto, cert, handler(f))
		running = append(running, s)
		if s.TLSConfig != nil {
			go s.ServeTLS(l, "", "") // ends with Close
		} else {
			go s.Serve(l)
		}
	}
	return addrs, stop, nil
}

// newServer speaks proto alone, with windows that don't hold an upload up.
func newServer(proto string, cert tls.Certificate, h http.Handler) *http.Server {
	var protocols http.Protocols
	switch proto {
	case client.H1, client.H1TLS:
		protocols.SetHTTP1(true)
	case client.H2C:
		protocols.SetUnencryptedHTTP2(true)
	case client.H2TLS:
		protocols.SetHTTP2(true)
	}
	s := &http.Server{
		Handler: h,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, requestsKey{}, new(atomic.Int64))
		},
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          512,
			MaxReceiveBufferPerConnection: 64 << 20,
			MaxReceiveBufferPerStream:     16 << 20,
			MaxReadFrameSize:              1 << 20,
		},
	}
	if proto == client.H1TLS || proto == client.H2TLS {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	return s
}

// requestsKey is the context key of a connection's counter of requests.
type requestsKey struct{}

func handler(f Files) http.Handler {
	answer := func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 256<<10)
		for {
			if _, err := r.Body.Read(buf); err == io.EOF {
				break
			} else if err != nil {
				return // the connection is gone
			}
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, small)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+SmallPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, small)
	})
	mux.HandleFunc("GET "+FirstPath, func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(requestsKey{}).(*atomic.Int64).Add(1) > 1 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		answer(w, r)
	})
	mux.HandleFunc("POST "+SmallPath, answer)
	mux.HandleFunc("POST "+DiscardPath, answer)
	mux.HandleFunc("GET "+BodyPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(w, r, f.Body)
	})
	return mux
}
