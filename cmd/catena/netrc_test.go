package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNetrc(t *testing.T) {
	entry := func(machine, user, password string) netrcEntry {
		return netrcEntry{machine, login{user, password}}
	}
	tests := []struct {
		name, text string
		want       netrc
	}{
		{"nothing", "", nil},
		{"white space", " \t\r\n\n", nil},
		{"one line", "machine a.test login u password p", netrc{entry("a.test", "u", "p")}},
		{"many lines", "machine\na.test\n\tlogin\r\n u\n\n\npassword\np\n", netrc{entry("a.test", "u", "p")}},
		{"any order", "machine a.test password p login u", netrc{entry("a.test", "u", "p")}},
		{"keywords of any case", "MACHINE a.test Login u PassWord p", netrc{entry("a.test", "u", "p")}},
		{"a host of any case", "machine A.Test login u password p", netrc{entry("a.test", "u", "p")}},
		{"an international host", "machine bücher.test login u", netrc{entry("xn--bcher-kva.test", "u", "")}},
		{"an IPv6 address", "machine 2001:DB8::1 login u", netrc{entry("2001:db8::1", "u", "")}},
		{"several", "machine a.test login u password p machine b.test login v password q", netrc{entry("a.test", "u", "p"), entry("b.test", "v", "q")}},
		{"default", "machine a.test login u default login anonymous password me", netrc{entry("a.test", "u", ""), entry("", "anonymous", "me")}},
		{"an account", "machine a.test login u account x password p", netrc{entry("a.test", "u", "p")}},
		{"values that are keywords", "machine machine login password password login", netrc{entry("machine", "password", "login")}},
		{"quotes", `machine a.test login "u 1" password "a \"b\" \\ \n\r\t\x"`, netrc{entry("a.test", "u 1", "a \"b\" \\ \n\r\tx")}},
		{"empty quotes", `machine a.test login "" password ""`, netrc{entry("a.test", "", "")}},
		{"quotes in the middle are plain", `machine a.test password p"q"`, netrc{entry("a.test", "", `p"q"`)}},
		{"backslashes without quotes are plain", `machine a.test password p\n`, netrc{entry("a.test", "", `p\n`)}},
		{"comments", "# machine x\nmachine a.test #login u\nlogin v # password p\n#", netrc{entry("a.test", "v", "")}},
		{"a value that begins like a comment", "machine a.test password #p", netrc{entry("a.test", "", "#p")}},
		{"a macro", "macdef init\nmachine x\nlogin y\n\nmachine a.test login u", netrc{entry("a.test", "u", "")}},
		{"a macro after DOS", "macdef init\r\nlogin y\r\n\r\nmachine a.test login u", netrc{entry("a.test", "u", "")}},
		{"a macro without an end", "machine a.test login u\nmacdef init\nlogin y", netrc{entry("a.test", "u", "")}},
		{"an empty macro", "macdef init\n\nmachine a.test", netrc{entry("a.test", "", "")}},
	}
	for _, tt := range tests {
		got, err := parseNetrc(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(netrcEntry{}, login{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What can't be read is an error that shows nothing of the file.
func TestParseNetrcRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no keyword", "secret", "line 1: a keyword is expected"},
		{"a password of two words", "machine a.test\nlogin u\npassword my secret", "line 3: a keyword is expected"},
		{"a machine without a name", "machine", "line 1: machine: the file ends"},
		{"an empty name", `machine ""`, "line 1: machine: the name is empty"},
		{"a password without a value", "machine a.test password\n\n", "line 3: password: the file ends"},
		{"a login of nobody", "login secret", "line 1: login: there is no machine"},
		{"two logins", "machine a.test login u\nlogin secret", "line 2: login: it is given twice"},
		{"a quote without an end", `machine a.test password "secret`, "line 1: password: the closing quote"},
		{"a quote over lines", "machine a.test password \"secret\n\"", "line 1: password: the closing quote"},
		{"a backslash at the end", `machine a.test password "secret\`, "line 1: password: the closing quote"},
		{"a quote with a tail", `machine a.test password "se"cret`, "line 1: password: something follows"},
	}
	for _, tt := range tests {
		got, err := parseNetrc(tt.text)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if got != nil {
			t.Errorf("%s: entries %v", tt.name, got)
		}
	}
}

func TestNetrcFind(t *testing.T) {
	n, err := parseNetrc(`
		machine a.test login one password 1
		machine a.test login two password 2
		machine a.test password any
		machine b.test login b password b
		default login other password x`)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		host, user string
		fallback   bool
		want       login
		ok         bool
	}{
		{"a.test", "", true, login{"one", "1"}, true},
		{"A.TEST", "", true, login{"one", "1"}, true},
		{"a.test", "two", true, login{"two", "2"}, true},
		{"a.test", "three", true, login{"three", "any"}, true},
		{"b.test", "", false, login{"b", "b"}, true},
		{"b.test", "a", false, login{}, false},
		{"b.test", "other", true, login{"other", "x"}, true},
		{"sub.a.test", "", false, login{}, false},
		{"c.test", "", true, login{"other", "x"}, true},
		{"c.test", "", false, login{}, false},
		{"c.test", "me", true, login{}, false},
	}
	for _, tt := range tests {
		got, ok := n.find(tt.host, tt.user, tt.fallback)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s, user %q, default %v: %v, %v; want %v, %v", tt.host, tt.user, tt.fallback, got, ok, tt.want, tt.ok)
		}
	}
}

func TestReadNetrc(t *testing.T) {
	s := serve(t, echo)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("NETRC", "")
	const good = "machine 127.0.0.1 login ada password secret"
	named, elsewhere := file(t, "named", good), file(t, "elsewhere", good)
	bad, huge := file(t, "bad", "secret"), file(t, "huge", "#"+strings.Repeat("x", maxNetrc))
	open := file(t, "open", good)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	const missing = "no such file"
	run := func(want string, args ...string) {
		t.Helper()
		got := catenaRun(t, "", append(args, s.URL)...)
		sent := strings.Contains(got.stdout, "Authorization: Basic YWRhOnNlY3JldA==\n")
		switch {
		case want == "sent":
			if !sent || got.stderr != "" || got.code != 0 {
				t.Errorf("%v: %+v", args, got)
			}
		case want == "not sent":
			if sent || got.stderr != "" || got.code != 0 {
				t.Errorf("%v: %+v", args, got)
			}
		case got.code != exitReadError || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "secret"):
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	run("not sent")
	run(missing, "-n")
	run("not sent", "--netrc-optional")
	run("not sent", "-n", "--netrc-optional")
	run("sent", "--netrc-file", named)
	run(missing, "--netrc-file", filepath.Join(home, "missing"))
	run("not sent", "--netrc-optional", "--netrc-file", filepath.Join(home, "missing"))
	run(bad+": line 1: a keyword", "--netrc-file", bad)
	run(bad+": line 1: a keyword", "--netrc-optional", "--netrc-file", bad)
	run("more than 1048576 bytes", "--netrc-file", huge)
	run(home, "--netrc-file", home)
	run("not sent", "--netrc-file", bad, "-u", "eve:other")
	if err := os.WriteFile(filepath.Join(home, ".netrc"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	run("sent", "-n")
	run("sent", "--netrc-optional")
	run("not sent")
	t.Setenv("NETRC", bad)
	run("line 1", "-n")
	t.Setenv("NETRC", elsewhere)
	run("sent", "-n")
	if runtime.GOOS == "windows" {
		return
	}
	got := catenaRun(t, "", "--netrc-file", open, s.URL)
	if got.code != 0 || !strings.HasPrefix(got.stderr, "catena: warning: others can read "+open) {
		t.Errorf("a file that others can read: %+v", got)
	}
	run("sent", "-s", "--netrc-file", open)
}

// FuzzNetrc reads any file. What it accepts can be found, and no error is longer than
// what is known without the file.
func FuzzNetrc(f *testing.F) {
	for _, seed := range []string{
		"", "machine a login b password c", "default\nlogin b", "macdef x\n\n\nmachine a", `machine "a" password "\"\\"`,
		"#\nmachine a#b account d", "machine a login", `machine a password "`, "machine \x00 login \xff", "macdef", "MACHINE É login u",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseNetrc(text)
		if err != nil {
			if n != nil || len(err.Error()) > 200 {
				t.Errorf("entries %v, error %v", n, err)
			}
			return
		}
		for _, e := range n {
			if got, ok := n.find(e.machine, e.user, true); !ok || e.user != "" && got.user != e.user {
				t.Errorf("%q: the entry of %q gives %v, %v", text, e.machine, got, ok)
			}
		}
	})
}
