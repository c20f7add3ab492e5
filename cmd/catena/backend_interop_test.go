//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// startBackend serves folder, and what static servers cannot do, by HTTP/1.1: it
// stands behind real servers. It returns host:port.
func startBackend(t *testing.T, folder string) string {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(os.DirFS(folder)))
	mux.HandleFunc("GET /empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /sum", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("X-Trailer", r.Trailer.Get("X-Late"))
		io.WriteString(w, hex.EncodeToString(sum.Sum(nil)))
	})
	mux.HandleFunc("GET /trailers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Late")
		io.WriteString(w, "small\n")
		w.(http.Flusher).Flush()
		w.Header().Set("X-Late", "after the body")
	})
	mux.HandleFunc("GET /fields", func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"X-Large-0", "X-Large-1", "X-Large-2"} {
			w.Header().Set(name, r.Header.Get(name))
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// files are what real servers serve.
type files struct {
	folder        string
	middle, large string // checksums
}

const (
	middleSize = 256 << 10
	bigSize    = 20 << 20
)

// newFiles writes small.txt, middle.bin and large.bin, which anybody may read.
func newFiles(t *testing.T) files {
	f := files{folder: t.TempDir()}
	if err := os.Chmod(filepath.Dir(f.folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.folder, "small.txt"), []byte("small\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.middle = writeLarge(t, filepath.Join(f.folder, "middle.bin"), middleSize)
	f.large = writeLarge(t, filepath.Join(f.folder, "large.bin"), bigSize)
	return f
}
