package auth_test

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// digestServer verifies Digest credentials by its own arithmetic.
type digestServer struct {
	user, password string
	realm          string
	algorithm      string // "" for none in the challenge
	qop            string // the challenge's, quoted; "" for none
	extra          string // more parameters of the challenge
	status         int    // 401, or 407
	target         string // what uri has to be
	silent         bool   // does not say stale
	lifetime       int    // uses of a nonce, 0 for any number
	newKeys        bool   // makes the key of "-sess" of each request's own nonces
	next           bool   // gives the next nonce with each answer

	mu     sync.Mutex // guards the fields below
	nonces int
	uses   map[string]map[string]bool // the counts seen of each nonce that was issued
	firsts map[string]string          // nonce and cnonce that keys of "-sess" were made from, by nonce
	log    []string
}

var digestParam = regexp.MustCompile(`([a-z0-9*]+)=("(?:[^"\\]|\\.)*"|[^," ]*)`)

// paramsOf reads credentials.
func paramsOf(value string) map[string]string {
	params := map[string]string{}
	for _, m := range digestParam.FindAllStringSubmatch(strings.TrimPrefix(value, "Digest "), -1) {
		v := m[2]
		if strings.HasPrefix(v, `"`) {
			v = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(v[1 : len(v)-1])
		}
		params[m[1]] = v
	}
	return params
}

func hashOf(algorithm string) func(string) string {
	var newHash func() hash.Hash
	switch strings.TrimSuffix(algorithm, "-sess") {
	case "SHA-256":
		newHash = sha256.New
	case "SHA-512-256":
		newHash = sha512.New512_256
	default:
		newHash = md5.New
	}
	return func(s string) string {
		h := newHash()
		io.WriteString(h, s)
		return fmt.Sprintf("%x", h.Sum(nil))
	}
}

// issue makes a nonce that needs escapes.
func (s *digestServer) issue() string {
	s.nonces++
	n := fmt.Sprintf(`n"\%d`, s.nonces)
	if s.uses == nil {
		s.uses, s.firsts = map[string]map[string]bool{}, map[string]string{}
	}
	s.uses[n] = map[string]bool{}
	return n
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// answer is 200 where the credentials are right, or a challenge.
func (s *digestServer) answer(req *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
		s.status = 401
	}
	names := map[int][3]string{
		401: {"Www-Authenticate", "Authorization", "Authentication-Info"},
		407: {"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info"},
	}[s.status]
	verdict, nonce := s.check(req, req.Header.Get(names[1]))
	s.log = append(s.log, verdict)
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
	if verdict == "ok" {
		if s.next {
			fresh := s.issue()
			s.firsts[fresh] = s.firsts[nonce]
			resp.Header.Set(names[2], "qop=auth, nextnonce="+quoted(fresh))
		}
		return resp
	}
	challenge := "Digest realm=" + quoted(s.realm) + ", nonce=" + quoted(s.issue()) + s.extra
	if s.algorithm != "" {
		challenge += ", algorithm=" + s.algorithm
	}
	if s.qop != "" {
		challenge += ", qop=" + quoted(s.qop)
	}
	if verdict == "stale" && !s.silent {
		challenge += ", stale=TRUE"
	}
	resp.StatusCode = s.status
	resp.Header.Set(names[0], challenge)
	return resp
}

// check says what it thinks of credentials.
func (s *digestServer) check(req *http.Request, value string) (verdict, nonce string) {
	if value == "" {
		return "none", ""
	}
	p := paramsOf(value)
	h := hashOf(s.algorithm)
	seen, known := s.uses[p["nonce"]]
	switch {
	case p["realm"] != s.realm:
		return "realm", ""
	case p["uri"] != s.target:
		return "uri " + p["uri"], ""
	case p["algorithm"] != s.algorithm:
		return "algorithm", ""
	case !known:
		return "stale", ""
	}
	a1 := h(s.user + ":" + s.realm + ":" + s.password)
	if strings.HasSuffix(s.algorithm, "-sess") {
		if s.newKeys || s.firsts[p["nonce"]] == "" {
			s.firsts[p["nonce"]] = p["nonce"] + ":" + p["cnonce"]
		}
		a1 = h(a1 + ":" + s.firsts[p["nonce"]])
	}
	a2 := req.Method + ":" + p["uri"]
	if p["qop"] == "auth-int" {
		body, err := req.GetBody()
		if err != nil {
			return "body", ""
		}
		text, _ := io.ReadAll(body)
		a2 += ":" + h(string(text))
	}
	want := h(a1 + ":" + p["nonce"] + ":" + h(a2))
	if p["qop"] != "" {
		want = h(strings.Join([]string{a1, p["nonce"], p["nc"], p["cnonce"], p["qop"], h(a2)}, ":"))
	}
	switch {
	case p["qop"] == "" && s.qop != "", p["response"] != want:
		return "wrong", ""
	case s.qop != "" && seen[p["nc"]]:
		return "count twice", ""
	case s.qop != "" && s.lifetime > 0 && len(seen) >= s.lifetime:
		return "stale", ""
	}
	seen[p["nc"]] = true
	return "ok", p["nonce"]
}

// call sends req as a client does: what an authenticator answers follows.
func call(t testing.TB, a auth.Authenticator, via proxy.Proxy, req *http.Request, serve func(*http.Request) *http.Response) *http.Response {
	t.Helper()
	if p, ok := a.(auth.Preemptive); ok {
		req = req.Clone(req.Context())
		if err := p.Authorize(req); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		resp := serve(req)
		if o, ok := a.(auth.Observer); ok {
			o.Observe(via, resp)
		}
		if resp.StatusCode != 401 && resp.StatusCode != 407 {
			return resp
		}
		next, err := a.Authenticate(via, resp)
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return resp
		}
		next.Response = resp
		req = next
	}
	t.Fatal("it never gives up")
	return nil
}

func newRequest(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}
