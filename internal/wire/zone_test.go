package wire_test

import (
	"testing"

	"github.com/catena-http/catena/internal/wire"
)

func TestWithoutZone(t *testing.T) {
	for host, want := range map[string]string{
		"a.test":            "a.test",
		"a.test:80":         "a.test:80",
		"[fe80::1]:80":      "[fe80::1]:80",
		"[fe80::1%25en0]":   "[fe80::1]",
		"[fe80::1%en0]:443": "[fe80::1]:443",
		"[fe80::1%en0":      "[fe80::1%en0",
		"a%b]":              "a%b]",
	} {
		if got := wire.WithoutZone(host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}
