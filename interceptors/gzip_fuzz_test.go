package interceptors_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"
)

// A bomb is decoded piece by piece.
func TestGzipMemoryIsConstant(t *testing.T) {
	bomb := gz(strings.Repeat("\x00", 8<<20))
	p := make([]byte, 32<<10)
	spent := testing.AllocsPerRun(3, func() {
		resp := answered(t, gzipped(io.NopCloser(strings.NewReader(bomb))))
		for {
			if _, err := resp.Body.Read(p); err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
		}
		resp.Body.Close()
	})
	if spent > 200 {
		t.Errorf("%.0f allocations for %d bytes that become %d", spent, len(bomb), 8<<20)
	}
}

// The decoder takes any bytes, never panics, and gives what compress/gzip gives.
func FuzzGzip(f *testing.F) {
	for _, seed := range []string{"", gz(""), gz("hello"), gz("a") + gz("b"), gz("a") + "JUNK", gz("hello")[:9], "\x1f\x8b\x08\x1f"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, coded []byte) {
		resp := answered(t, gzipped(io.NopCloser(bytes.NewReader(coded))))
		got, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		std, stdErr := gzip.NewReader(bytes.NewReader(coded))
		if stdErr != nil {
			return
		}
		want, stdErr := io.ReadAll(io.LimitReader(std, 1<<20))
		if stdErr == nil && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("got %d bytes, %v; compress/gzip gives %d and no error", len(got), err, len(want))
		}
	})
}
