package main

import (
	"math"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
)

const anyURL = "http://example.test/"

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want func(*options)
	}{
		{"a URL alone", nil, func(*options) {}},
		{"combined switches", []string{"-sSL"}, func(o *options) { o.silent, o.showError = true, true }},
		{"switches and a value", []string{"-sX", "PUT"}, func(o *options) { o.silent, o.method = true, "PUT" }},
		{"an attached value", []string{"-XPUT"}, func(o *options) { o.method = "PUT" }},
		{"an attached value that looks like switches", []string{"-d-sS"}, func(o *options) { o.data = []data{{text: "-sS"}} }},
		{"a long value", []string{"--request", "PUT"}, func(o *options) { o.method = "PUT" }},
		{"a long value by =", []string{"--data=a=b"}, func(o *options) { o.data = []data{{text: "a=b"}} }},
		{"a value that is an option", []string{"-A", "-v"}, func(o *options) { o.userAgent = ptr("-v") }},
		{"an empty value", []string{"-A", ""}, func(o *options) { o.userAgent = ptr("") }},
		{"a switch turned off", []string{"-i", "--no-include"}, func(*options) {}},
		{"the later counts", []string{"--no-follow", "-L"}, func(*options) {}},
		{"no redirects", []string{"--no-follow"}, func(o *options) { o.follow = false }},
		{"no redirects, by the other name", []string{"--no-location"}, func(o *options) { o.follow = false }},
		{"data", []string{"-d", "a", "-d", "@f", "--data-binary", "@-", "--data-binary", "b", "--data-raw", "@c"}, func(o *options) {
			o.data = []data{{text: "a"}, {text: "f", file: true, plain: true}, {text: "-", file: true}, {text: "b"}, {text: "@c"}}
		}},
		{"plain text of -d is kept as it is", []string{"-d", "a\nb"}, func(o *options) { o.data = []data{{text: "a\nb"}} }},
		{"headers", []string{"-H", "A: b:c ", "-H", "D:", "-H", "E;"}, func(o *options) {
			o.headers = []field{{name: "A", value: "b:c"}, {name: "D", without: true}, {name: "E"}}
		}},
		{"outputs", []string{"-o", "a"}, func(o *options) { o.outputs = []output{{name: "a"}} }},
		{"remote name", []string{"-O"}, func(o *options) { o.outputs = []output{{remote: true}} }},
		{"times", []string{"--connect-timeout", "2.5", "--read-timeout", "300ms", "--write-timeout", "0", "-m", "1m"}, func(o *options) {
			o.connectTimeout, o.readTimeout = ptr(2500*time.Millisecond), ptr(300*time.Millisecond)
			o.writeTimeout, o.callTimeout = ptr(time.Duration(0)), ptr(time.Minute)
		}},
		{"HTTP/1.1", []string{"--http1.1"}, func(o *options) { o.protocols = []string{"http/1.1"} }},
		{"HTTP/2", []string{"--http1.1", "--http2"}, func(o *options) { o.protocols = []string{"h2", "http/1.1"} }},
		{"prior knowledge", []string{"--http2-prior-knowledge"}, func(o *options) { o.protocols = []string{"h2c"} }},
		{"redirects", []string{"--max-redirs", "3"}, func(o *options) { o.maxRedirects = ptr(3) }},
		{"redirects without end", []string{"--max-redirs", "-1"}, func(o *options) { o.maxRedirects = ptr(math.MaxInt) }},
		{"retry policy", []string{"--retry-policy", "okhttp"}, func(o *options) { o.retryPolicy = chain.RetryLikeOkHttp }},
		{"proxy", []string{"-x", "proxy.test:3128"}, func(o *options) {
			o.proxy = &proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", Port: 3128}
		}},
		{"no proxy", []string{"-x", ""}, func(o *options) { o.proxy = &proxy.Proxy{} }},
		{"resolve", []string{"--resolve", "Example.TEST:443:192.0.2.1,[2001:db8::1]", "--resolve", "+*:80:2001:db8::2", "--resolve", "[::1]:8080:127.0.0.1"}, func(o *options) {
			o.resolve = overrides{
				{"example.test", 443}: {netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
				{"*", 80}:             {netip.MustParseAddr("2001:db8::2")},
				{"::1", 8080}:         {netip.MustParseAddr("127.0.0.1")},
			}
		}},
		{"the rest", []string{"-GIfivke", "from", "-u", "a:b", "--trace", "--compressed", "--cacert", "ca.pem"}, func(o *options) {
			o.asQuery, o.head, o.fail, o.include, o.verbose, o.insecure = true, true, true, true, true, true
			o.referer, o.user, o.trace, o.compressed, o.caFile = "from", "a:b", true, true, "ca.pem"
		}},
		{"ways to authenticate", []string{"--basic", "--digest", "--proxy-anyauth"}, func(o *options) {
			o.schemes, o.proxySchemes = schemes{true, true}, schemes{true, true}
		}},
		{"ways to authenticate, turned off", []string{"--anyauth", "--no-basic", "--proxy-basic", "--proxy-digest", "--no-proxy-digest"}, func(o *options) {
			o.schemes, o.proxySchemes = schemes{digest: true}, schemes{basic: true}
		}},
		{"netrc", []string{"-n", "--netrc-optional", "--netrc-file", "f"}, func(o *options) {
			o.netrc, o.netrcOptional, o.netrcFile = true, true, "f"
		}},
		{"a proxy in full", []string{"-x", "socks5h://ada:se%3Acret@[::1]:1081"}, func(o *options) {
			o.proxy = &proxy.Proxy{Type: proxy.SOCKS5, Host: "::1", Port: 1081, User: url.UserPassword("ada", "se:cret")}
		}},
		{"for the proxy", []string{"-U", "a%3Ab:c:d%25", "--proxy-header", "A: b", "--proxy-insecure", "--proxy-cacert", "ca.pem", "--noproxy", ""}, func(o *options) {
			o.proxyUser, o.proxyHeaders = url.UserPassword("a:b", "c:d%"), []field{{name: "A", value: "b"}}
			o.proxyInsecure, o.proxyCAFile, o.noProxy = true, "ca.pem", ptr("")
		}},
		{"upload", []string{"-T", "-"}, func(o *options) { o.upload = "-" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := defaultOptions()
			want.urls = []string{anyURL}
			tt.want(want)
			for place, args := range map[string][]string{
				"URL last":     append(append([]string{}, tt.args...), anyURL),
				"URL first":    append([]string{anyURL}, tt.args...),
				"URL after --": append(append([]string{}, tt.args...), "--", anyURL),
			} {
				got, err := parse(args)
				if err != nil {
					t.Fatalf("%s: %v", place, err)
				}
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{}, data{}, field{}, output{}, endpoint{}, schemes{}, url.Userinfo{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
					t.Errorf("%s (-want +got):\n%s", place, diff)
				}
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string // in the error
	}{
		{"nothing", []string{}, "no URL is given"},
		{"no URL", []string{"-v"}, "no URL is given"},
		{"an unknown short option", []string{"-sZ", anyURL}, "option -Z is unknown"},
		{"an unknown long option", []string{"--nosuch", anyURL}, "option --nosuch is unknown"},
		{"an unknown long option by =", []string{"--nosuch=secret", anyURL}, "option --nosuch is unknown"},
		{"a value turned off", []string{"--no-request", anyURL}, "option --no-request is unknown"},
		{"a missing short value", []string{anyURL, "-X"}, "option -X needs a value: METHOD"},
		{"a missing long value", []string{anyURL, "--request"}, "option --request needs a value: METHOD"},
		{"a switch with a value", []string{"--head=yes", anyURL}, "option --head takes no value"},
		{"an empty method", []string{"-X", "", anyURL}, "option -X: the value is empty"},
		{"a time in words", []string{"-m", "soon", anyURL}, `option -m: "soon" is no time`},
		{"a negative time", []string{"-m", "-1", anyURL}, `option -m: "-1" is no time`},
		{"a time beyond all", []string{"-m", "1e300", anyURL}, `option -m: "1e300" is no time`},
		{"a time that is no number", []string{"-m", "NaN", anyURL}, `option -m: "NaN" is no time`},
		{"a negative number of redirects", []string{"--max-redirs", "-2", anyURL}, `option --max-redirs: "-2" is no number`},
		{"an unknown policy", []string{"--retry-policy", "bold", anyURL}, `option --retry-policy: "bold" is none of safe and okhttp`},
		{"a header without a colon", []string{"-H", "secret", anyURL}, "option -H: want"},
		{"a header without a name", []string{"-H", ": secret", anyURL}, "option -H: the field's name"},
		{"a header with a line end", []string{"-H", "A: b\r\nC: d", anyURL}, "option -H: the field's value"},
		{"a file without a name", []string{"-d", "@", anyURL}, "option -d: no file is named"},
		{"a user that is no percent-encoding", []string{"-U", "a:secret%", anyURL}, "option -U: a % begins no percent-encoding"},
		{"no user", []string{"-U", "", anyURL}, "option -U: the value is empty"},
		{"a user that SOCKS5 can't have", []string{"-x", "socks5://proxy.test", "-U", "secret", anyURL}, "option -U: proxy password is empty"},
		{"a proxy's header without a colon", []string{"--proxy-header", "secret", anyURL}, "option --proxy-header: want"},
		{"a proxy with a password and no kind", []string{"-x", "ftp://a:secret@proxy.test", anyURL}, "option -x: "},
		{"a proxy of no kind", []string{"-x", "ftp://proxy.test", anyURL}, "option -x: "},
		{"an address that is a name", []string{"--resolve", "a.test:80:b.test", anyURL}, "option --resolve: want HOST:PORT:ADDRESS"},
		{"no address", []string{"--resolve", "a.test:80:", anyURL}, "option --resolve: want HOST:PORT:ADDRESS"},
		{"no port", []string{"--resolve", "a.test:192.0.2.1", anyURL}, "option --resolve: want HOST:PORT:ADDRESS"},
		{"port 0", []string{"--resolve", "a.test:0:192.0.2.1", anyURL}, "option --resolve: want HOST:PORT:ADDRESS"},
		{"two bodies", []string{"-d", "a", "-T", "b", anyURL}, "one body"},
		{"HEAD with a body", []string{"-I", "-d", "a", anyURL}, "option -I excludes a body"},
		{"more outputs than URLs", []string{"-O", "-o", "a", anyURL}, "more outputs than URLs: 2 and 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := result{}
			var stdout, stderr terminal
			got.code = run(t.Context(), tt.args, strings.NewReader(""), &stdout, &stderr)
			got.stdout, got.stderr = stdout.String(), stderr.String()
			if got.code != exitUsage || got.stdout != "" {
				t.Errorf("exit code %d, output %q; want %d and none", got.code, got.stdout, exitUsage)
			}
			if !strings.Contains(got.stderr, tt.want) || strings.Contains(got.stderr, "secret") {
				t.Errorf("error %q, want %q in it, and no secret", got.stderr, tt.want)
			}
			if !strings.HasSuffix(got.stderr, "; try 'catena --help'\n") || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("error %q, want one line with a hint", got.stderr)
			}
		})
	}
}

// TestFlags holds the table of options to what parse takes for granted.
func TestFlags(t *testing.T) {
	long, short := map[string]bool{}, map[byte]bool{}
	for _, f := range flags {
		if long[f.long] || f.short != 0 && short[f.short] {
			t.Errorf("option %s is there twice", f.long)
		}
		long[f.long], short[f.short] = true, true
		if (f.turn == nil) == (f.set == nil) || (f.set == nil) != (f.value == "") {
			t.Errorf("option %s is neither a switch nor one that takes a value", f.long)
		}
		if f.help == "" {
			t.Errorf("option %s has no help", f.long)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	help := catenaRun(t, "", "--help")
	if help.code != 0 || help.stderr != "" {
		t.Fatalf("exit code %d, errors %q", help.code, help.stderr)
	}
	for _, f := range flags {
		if !strings.Contains(help.stdout, " --"+f.long) {
			t.Errorf("the help does not show --%s", f.long)
		}
	}
	version := catenaRun(t, "", "-V")
	if version.code != 0 || !strings.HasPrefix(version.stdout, "catena ") {
		t.Errorf("exit code %d, output %q", version.code, version.stdout)
	}
}
