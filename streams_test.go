package catena_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// flood answers with more than anybody wants, and small with little.
func flood(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/big" {
		answer(rw, r)
		return
	}
	chunk := make([]byte, 64<<10)
	for range 16 << 10 { // 1 GiB
		if _, err := rw.Write(chunk); err != nil {
			return
		}
	}
}

// heap is what is in use after a collection, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	for range 2 { // pools keep their memory for one more
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Responses that nobody reads must not starve the others on their connection, nor
// cost more than a window each.
func TestUnreadResponsesLeaveRoomForOthers(t *testing.T) {
	overProtocols(t, onHTTP2, func(w *world) {
		w.serve(flood)
		before := heap()
		var unread []io.Closer
		for range 3 {
			resp, err := w.client.Do(w.request("GET", "/big", nil))
			if err != nil {
				w.Fatal(err)
			}
			unread = append(unread, resp.Body)
		}
		time.Sleep(time.Minute) // the windows are full
		for range 20 {
			began := time.Now()
			w.get("/small", "abc")
			if took := time.Since(began); took > 200*time.Millisecond {
				w.Errorf("a small response beside unread ones took %v", took)
			}
		}
		if n := w.net.Dials(originAddr); n != 1 {
			w.Errorf("%d connections, want 1", n)
		}
		if now := heap(); now > before+48<<20 {
			w.Errorf("three unread responses cost %d MiB", (now-before)>>20)
		}
		for _, body := range unread {
			body.Close()
		}
	})
}

// What is closed early gives back its memory.
func TestStreamsGiveTheirMemoryBack(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(flood)
		part := make([]byte, 1<<20)
		read := func() {
			resp, err := w.client.Do(w.request("GET", "/big", nil))
			if err != nil {
				w.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, part); err != nil {
				w.Error(err)
			}
			resp.Body.Close()
		}
		read()
		before := heap()
		for range 20 {
			read()
		}
		time.Sleep(time.Minute)
		if now := heap(); now > before+8<<20 {
			w.Errorf("20 responses closed early keep %d MiB", (now-before)>>20)
		}
	})
}

// A request that is over must not keep its body, though its connection is pooled.
func TestRequestsGiveTheirBodiesBack(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
			server.Config.Protocols = &http.Protocols{}
			server.Config.Protocols.SetHTTP1(true)
			server.Config.Protocols.SetUnencryptedHTTP2(true)
			server.Start()
			defer server.Close()
			client := newClient(t, catena.WithProtocols(protocol), catena.WithProxy(proxy.Proxy{}))
			gone := make(chan struct{})
			func() {
				body := &struct{ io.Reader }{strings.NewReader("Hello")}
				runtime.AddCleanup(body, func(gone chan struct{}) { close(gone) }, gone)
				resp, err := client.Post(t.Context(), server.URL, "text/plain", body)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}()
			if n := client.Pool().IdleCount(); n != 1 {
				t.Errorf("%d idle connections, want 1", n)
			}
			for range 500 {
				runtime.GC()
				select {
				case <-gone:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
			t.Error("the body of a request that is over is still held")
		})
	}
}
