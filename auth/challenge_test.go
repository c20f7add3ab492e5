package auth_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
)

func TestChallenges(t *testing.T) {
	type params = map[string]string
	type list = []auth.Challenge
	tests := []struct {
		name   string
		fields []string
		want   list
	}{
		{"no field", nil, nil},
		{"empty field", []string{""}, nil},
		{"nothing but separators", []string{" ,, \t,"}, nil},

		{"scheme alone", []string{"Negotiate"}, list{{Scheme: "Negotiate"}}},
		{"schemes alone", []string{"Negotiate , NTLM"}, list{{Scheme: "Negotiate"}, {Scheme: "NTLM"}}},
		{"one parameter", []string{`Basic realm="x"`}, list{{Scheme: "Basic", Params: params{"realm": "x"}}}},
		{"case of names", []string{`bAsIc rEaLm="X", CHARSET=utf-8`}, list{
			{Scheme: "bAsIc", Params: params{"realm": "X", "charset": "utf-8"}},
		}},
		{"RFC 7235's example", []string{`Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple"`}, list{
			{Scheme: "Newauth", Params: params{"realm": "apps", "type": "1", "title": `Login to "apps"`}},
			{Scheme: "Basic", Params: params{"realm": "simple"}},
		}},
		{"RFC 7616's example", []string{
			`Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"`,
			`Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5`,
		}, list{
			{Scheme: "Digest", Params: params{
				"realm": "http-auth@example.org", "qop": "auth, auth-int", "algorithm": "SHA-256",
				"nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
			}},
			{Scheme: "Digest", Params: params{"realm": "http-auth@example.org", "qop": "auth, auth-int", "algorithm": "MD5"}},
		}},
		{"commas in quotes", []string{`Basic realm="a, b", Digest realm="x", qop="auth, auth-int", nonce="n", algorithm=SHA-256`}, list{
			{Scheme: "Basic", Params: params{"realm": "a, b"}},
			{Scheme: "Digest", Params: params{"realm": "x", "qop": "auth, auth-int", "nonce": "n", "algorithm": "SHA-256"}},
		}},
		{"several fields in order", []string{"NTLM", `Basic realm="1"`, `Basic realm="2"`}, list{
			{Scheme: "NTLM"}, {Scheme: "Basic", Params: params{"realm": "1"}}, {Scheme: "Basic", Params: params{"realm": "2"}},
		}},
		{"a parameter does not cross fields", []string{"Basic", `realm="x"`}, list{{Scheme: "Basic"}}},

		{"token68", []string{"Negotiate abc=="}, list{{Scheme: "Negotiate", Token68: "abc=="}}},
		{"token68 without padding", []string{"Bearer a-._~+/Z9"}, list{{Scheme: "Bearer", Token68: "a-._~+/Z9"}}},
		{"token68 and a next one", []string{"Negotiate abc==, Basic realm=x"}, list{
			{Scheme: "Negotiate", Token68: "abc=="}, {Scheme: "Basic", Params: params{"realm": "x"}},
		}},
		{"token68 that looks like a name", []string{"Negotiate realm="}, list{{Scheme: "Negotiate", Token68: "realm="}}},
		{"parameters after a token68", []string{`Digest abc==, nonce="n", NTLM`}, list{
			{Scheme: "Digest", Token68: "abc=="}, {Scheme: "NTLM"},
		}},
		{"token68 with something behind", []string{"Digest abc== x, NTLM"}, list{{Scheme: "NTLM"}}},

		{"escapes", []string{`Basic realm="\\ \" \a\,"`}, list{{Scheme: "Basic", Params: params{"realm": `\ " a,`}}}},
		{"empty quoted string", []string{`Basic realm=""`}, list{{Scheme: "Basic", Params: params{"realm": ""}}}},
		{"bytes beyond ASCII", []string{"Basic realm=\"b\xe4r é\""}, list{{Scheme: "Basic", Params: params{"realm": "b\xe4r é"}}}},
		{"space around =", []string{"Digest  realm \t=\t \"x\" , nonce= n"}, list{
			{Scheme: "Digest", Params: params{"realm": "x", "nonce": "n"}},
		}},
		{"stray commas", []string{`,, Digest ,, realm="x",,, nonce=n ,,Basic realm=y,`}, list{
			{Scheme: "Digest", Params: params{"realm": "x", "nonce": "n"}}, {Scheme: "Basic", Params: params{"realm": "y"}},
		}},
		{"unquoted values beyond tokens", []string{"Digest uri=/a?b=c;d, nonce=abc==, opaque="}, list{
			{Scheme: "Digest", Params: params{"uri": "/a?b=c;d", "nonce": "abc==", "opaque": ""}},
		}},
		{"no space between challenges", []string{`Basic realm="x",Digest realm="y",nonce="n"`}, list{
			{Scheme: "Basic", Params: params{"realm": "x"}}, {Scheme: "Digest", Params: params{"realm": "y", "nonce": "n"}},
		}},

		{"parameter without scheme", []string{`realm="x", Basic realm="y"`}, list{{Scheme: "Basic", Params: params{"realm": "y"}}}},
		{"repeated parameter", []string{`NTLM, Basic realm="x", REALM="y", charset=z, Digest realm="w"`}, list{
			{Scheme: "NTLM"}, {Scheme: "Digest", Params: params{"realm": "w"}},
		}},
		{"quote never closed", []string{`NTLM, Basic realm="x, Digest realm=y`, "Negotiate"}, list{
			{Scheme: "NTLM"}, {Scheme: "Negotiate"},
		}},
		{"backslash at the end", []string{`NTLM, Basic realm="x\`}, list{{Scheme: "NTLM"}}},
		{"escaped quote at the end", []string{`NTLM, Basic realm="x\"`}, list{{Scheme: "NTLM"}}},
		{"unescaped quotes", []string{`NTLM, Basic realm="a "b" c", Digest realm="x"`}, list{
			{Scheme: "NTLM"}, {Scheme: "Digest", Params: params{"realm": "x"}},
		}},
		{"quote in a value", []string{`NTLM, Basic realm=a"b`}, list{{Scheme: "NTLM"}}},
		{"no scheme but a quote", []string{`"Basic, x", NTLM`}, list{{Scheme: "NTLM"}}},
		{"two words", []string{"Basic realm x, NTLM"}, list{{Scheme: "NTLM"}}},
		{"missing comma", []string{`Basic realm="x" Digest nonce="a,b", qop=auth, NTLM`}, list{{Scheme: "NTLM"}}},
		{"no token", []string{"Basic @=x, {}, NTLM"}, list{{Scheme: "NTLM"}}},
		{"control characters", []string{"Basic\x00realm=x, NTLM"}, list{{Scheme: "NTLM"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"WWW-Authenticate", "Proxy-Authenticate", "www-authenticate"} {
				h := http.Header{}
				for _, field := range tt.fields {
					h.Add(name, field)
				}
				h.Add("X-Authenticate", "Other")
				if diff := cmp.Diff(tt.want, auth.Challenges(h, name)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestChallengeIs(t *testing.T) {
	c := auth.Challenge{Scheme: "bAsic"}
	if !c.Is("Basic") || c.Is("Basi") || c.Is("") {
		t.Error("scheme bAsic is to be Basic and nothing else")
	}
}

// FuzzChallenges checks that what is read is well-formed, and that it is read again the same when it is
// written by the grammar, behind another field.
func FuzzChallenges(f *testing.F) {
	for _, seed := range []string{
		`Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple"`,
		"Negotiate abc==, NTLM, Digest a=b , c = \"d\\\"\",,", "Basic realm=\"x", "a b c, =, \"\\", "x\x00 y=\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := auth.Challenges(http.Header{"Www-Authenticate": {value}}, "WWW-Authenticate")
		text := make([]string, len(got))
		for i, c := range got {
			if c.Scheme == "" || c.Token68 != "" && c.Params != nil || c.Params != nil && len(c.Params) == 0 {
				t.Fatalf("%q gives the malformed challenge %#v", value, c)
			}
			text[i] = written(c)
		}
		again := auth.Challenges(http.Header{"Www-Authenticate": {`First x="y"`, strings.Join(text, ", ")}}, "WWW-Authenticate")
		first := auth.Challenge{Scheme: "First", Params: map[string]string{"x": "y"}}
		if diff := cmp.Diff(append([]auth.Challenge{first}, got...), again); diff != "" {
			t.Fatalf("%q, written as %q (-want +got):\n%s", value, text, diff)
		}
	})
}

// written returns c as RFC 9110 section 11.6.1 wants it.
func written(c auth.Challenge) string {
	if c.Token68 != "" {
		return c.Scheme + " " + c.Token68
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.Params[name])
		pairs = append(pairs, name+`="`+quoted+`"`)
	}
	return strings.TrimSpace(c.Scheme + " " + strings.Join(pairs, ", "))
}
