package redact_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/internal/redact"
)

func TestHeaderMasksSecretsOfAnyCase(t *testing.T) {
	h := http.Header{
		"Authorization": {"Bearer one", "Basic two"},
		"x-api-KEY":     {"three"},
		"Cookie":        {"theme=dark; sid=four"},
		"Set-Cookie":    {"lang=en", "sid=five"},
		"X-Mine":        {"six"},
		"Location":      {"https://user:seven@host.test/a?token=eight&b=1", "http://user:nine@host.test:bad/"},
		"Accept":        {"*/*"},
		"X-Empty":       nil,
	}
	before := h.Clone()
	got := redact.New("x-mine").Header(h)
	want := http.Header{
		"Authorization": {"██", "██"},
		"x-api-KEY":     {"██"},
		"Cookie":        {"██"},
		"Set-Cookie":    {"██", "██"},
		"X-Mine":        {"██"},
		"Location":      {"https://user:xxxxx@host.test/a?token=██&b=1", "██"},
		"Accept":        {"*/*"},
		"X-Empty":       nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Header (-want +got):\n%s", diff)
	}
	got["Accept"][0] = "changed"
	if diff := cmp.Diff(before, h); diff != "" {
		t.Errorf("the original changed (-before +after):\n%s", diff)
	}
	if redact.New().Header(nil) != nil {
		t.Error("a nil header did not stay nil")
	}
}

func TestIsSecret(t *testing.T) {
	s := redact.New("X-Mine", "sid", "")
	for name, want := range map[string]bool{
		"Authorization":       true,
		"PROXY-AUTHORIZATION": true,
		"cookie":              true,
		"X-API-Key":           true,
		"X_Api_Key":           true,
		"x-mine":              true,
		"SID":                 true,
		"Key":                 false, // a parameter only
		"Signature":           false,
		"Host":                false,
		"Accept":              false,
		"Idempotency-Key":     false,
		"":                    false,
	} {
		if got := s.IsSecret(name); got != want {
			t.Errorf("IsSecret(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestIsSecretParam(t *testing.T) {
	s := redact.New("X-Mine")
	for name, want := range map[string]bool{
		"access_token":   true,
		"accessToken":    true,
		"user[password]": true,
		"token[]":        true,
		"x-mine":         true,
		"Authorization":  true,
		"page":           false,
		"user[name]":     false,
		"[]":             false,
	} {
		if got := s.IsSecretParam(name); got != want {
			t.Errorf("IsSecretParam(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	base := redact.New()
	more := base.With("x-mine")
	if base.IsSecret("X-Mine") {
		t.Error("With changed its receiver")
	}
	if !more.IsSecret("X-Mine") || !more.IsSecret("Authorization") {
		t.Error("With lost a name")
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	s := redact.New()
	n := testing.AllocsPerRun(100, func() {
		s.IsSecret("X-Requested-With")
		s.IsSecret("Authorization")
		s.IsSecretParam("page")
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
