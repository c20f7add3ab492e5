package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
)

// What a proxy may answer other than yes. The server closes after its last answer,
// so that whoever waits for more fails in another way.
func TestHandshakeRefused(t *testing.T) {
	const (
		five = "proxy socks5://p.test:1080 did not connect to a.test:443: "
		user = "proxy socks5://me@p.test:1080 did not connect to a.test:443: "
		four = "proxy socks4://p.test:1080 did not connect to 192.0.2.1:80: "
		cred = "\x01\x02me\x07hunter2"
	)
	reply5 := func(code string) script { return script{{greet, "\x05\x00"}, {askName, "\x05" + code}} }
	reply4 := func(answer string) script { return script{{ask4, answer}} }
	for name, tc := range map[string]struct {
		script script
		want   string // the error; what it begins with tells the proxy
		code   byte
		unauth bool
	}{
		"choice: another version":         {script{{greet, "\x04\x00"}}, five + "its choice of authentication has version 4 instead of 5", 0, false},
		"choice: version 0":               {script{{greet, "\x00\x00"}}, five + "its choice of authentication has version 0 instead of 5", 0, false},
		"choice: a reply of socks4":       {script{{greet, "\x00\x5b\x00\x00\x00\x00\x00\x00"}}, five + "its choice of authentication has version 0 instead of 5", 0, false},
		"choice: HTTP":                    {script{{greet, "HTTP/1.1 400 Bad Request\r\n\r\n"}}, five + "its choice of authentication begins with 'H': it seems to be an HTTP server", 0, false},
		"choice: none of those offered":   {script{{greet, "\x05\xff"}}, five + "it wants authentication, and there are no credentials for it", 0, true},
		"choice: not even with a user":    {script{{greetUser, "\x05\xff"}}, user + "it takes no user and password (GSSAPI, which it may want, is not supported)", 0, true},
		"choice: GSSAPI":                  {script{{greet, "\x05\x01"}}, five + "it wants GSSAPI authentication, which is not supported and was not offered", 0, true},
		"choice: GSSAPI before a user":    {script{{greetUser, "\x05\x01"}}, user + "it wants GSSAPI authentication, which is not supported and was not offered", 0, true},
		"choice: a user, not offered":     {script{{greet, "\x05\x02"}}, five + "it chose authentication method 2, which was not offered", 0, false},
		"choice: a method nobody knows":   {script{{greetUser, "\x05\x80"}}, user + "it chose authentication method 128, which was not offered", 0, false},
		"user: refused":                   {script{{greetUser, "\x05\x02"}, {cred, "\x01\x01"}}, user + "it refused user and password (status 1)", 0, true},
		"user: refused by another status": {script{{greetUser, "\x05\x02"}, {cred, "\x01\xff"}}, user + "it refused user and password (status 255)", 0, true},
		"user: another version":           {script{{greetUser, "\x05\x02"}, {cred, "\x05\x00"}}, user + "its answer to the credentials has version 5 instead of 1", 0, false},
		"user: closed":                    {script{{greetUser, "\x05\x02"}, {cred, ""}}, user + "it closed the connection before the end of its answer to the credentials: unexpected EOF", 0, false},
		"reply: 1":                        {reply5("\x01\x00\x01\x00\x00\x00\x00\x00\x00"), five + "general failure of the proxy (reply code 1)", 1, false},
		"reply: 2":                        {reply5("\x02\x00\x01\x00\x00\x00\x00\x00\x00"), five + "not allowed by the proxy's rules (reply code 2)", 2, false},
		"reply: 3":                        {reply5("\x03\x00\x01\x00\x00\x00\x00\x00\x00"), five + "network unreachable (reply code 3)", 3, false},
		"reply: 4":                        {reply5("\x04\x00\x01\x00\x00\x00\x00\x00\x00"), five + "host unreachable (reply code 4)", 4, false},
		"reply: 5":                        {reply5("\x05\x00\x01\x00\x00\x00\x00\x00\x00"), five + "connection refused (reply code 5)", 5, false},
		"reply: 6":                        {reply5("\x06\x00\x01\x00\x00\x00\x00\x00\x00"), five + "time to live expired (reply code 6)", 6, false},
		"reply: 7":                        {reply5("\x07\x00\x01\x00\x00\x00\x00\x00\x00"), five + "the proxy does not support the command CONNECT (reply code 7)", 7, false},
		"reply: 8":                        {reply5("\x08\x00\x01\x00\x00\x00\x00\x00\x00"), five + "the proxy does not support this type of address (reply code 8)", 8, false},
		"reply: 9":                        {reply5("\x09\x00\x01\x00\x00\x00\x00\x00\x00"), five + "refused for a reason that has no meaning in the protocol (reply code 9)", 9, false},
		"reply: 255":                      {reply5("\xff\x00\x01\x00\x00\x00\x00\x00\x00"), five + "refused for a reason that has no meaning in the protocol (reply code 255)", 255, false},
		"reply: a short refusal":          {reply5("\x05"), five + "connection refused (reply code 5)", 5, false},
		"reply: a refusal, bad address":   {reply5("\x05\x00\x09"), five + "connection refused (reply code 5)", 5, false},
		"reply: another version":          {script{{greet, "\x05\x00"}, {askName, "\x04\x00\x00\x01"}}, five + "its reply has version 4 instead of 5", 0, false},
		"reply: HTTP":                     {script{{greet, "\x05\x00"}, {askName, "HTTP/1.1"}}, five + "its reply begins with 'H': it seems to be an HTTP server", 0, false},
		"reply: address of type 0":        {reply5("\x00\x00\x00\x00\x00\x00\x00\x00\x00"), five + "its reply has an address of the unknown type 0", 0, false},
		"reply: address of type 2":        {reply5("\x00\x00\x02\x00\x00\x00\x00\x00\x00"), five + "its reply has an address of the unknown type 2", 0, false},
		"reply: address of type 255":      {reply5("\x00\x00\xff"), five + "its reply has an address of the unknown type 255", 0, false},
		"reply: IPv6 of 4 bytes":          {reply5("\x00\x00\x04\x00\x00\x00\x00\x00\x00"), five + "it closed the connection before the end of its reply: unexpected EOF", 0, false},
		"reply: a name without its port":  {reply5("\x00\x00\x03\x02ab"), five + "it closed the connection before the end of its reply: unexpected EOF", 0, false},
		"socks4: 91":                      {reply4("\x00\x5b\x00\x00\x00\x00\x00\x00"), four + "rejected or failed (reply code 91)", 91, false},
		"socks4: 92":                      {reply4("\x00\x5c\x00\x00\x00\x00\x00\x00"), four + "the proxy can't reach an identd here to ask who we are (reply code 92)", 92, true},
		"socks4: 93":                      {reply4("\x00\x5d\x00\x00\x00\x00\x00\x00"), four + "the identd here names another user (reply code 93)", 93, true},
		"socks4: 94":                      {reply4("\x00\x5e\x00\x00\x00\x00\x00\x00"), four + "refused for a reason that has no meaning in the protocol (reply code 94)", 94, false},
		"socks4: 0":                       {reply4("\x00\x00\x00\x00\x00\x00\x00\x00"), four + "refused for a reason that has no meaning in the protocol (reply code 0)", 0, false},
		"socks4: a short refusal":         {reply4("\x00\x5b"), four + "rejected or failed (reply code 91)", 91, false},
		"socks4: another version":         {reply4("\x04\x5a\x00\x00\x00\x00\x00\x00"), four + "its reply has version 4 instead of 0", 0, false},
		"socks4: a choice of socks5":      {reply4("\x05\xff"), four + "its reply has version 5 instead of 0", 0, false},
		"socks4: HTTP":                    {reply4("HTTP/1.0 400 Bad Request\r\n\r\n"), four + "its reply begins with 'H': it seems to be an HTTP server", 0, false},
		"socks4: a reply without an end":  {reply4("\x00\x5a\x00\x00\x00\x00\x00"), four + "it closed the connection before the end of its reply: unexpected EOF", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, addr := via(proxy.SOCKS5), "a.test:443"
			switch {
			case strings.HasPrefix(tc.want, user):
				p = via(proxy.SOCKS5, "me", "hunter2")
			case strings.HasPrefix(tc.want, four):
				p, addr = via(proxy.SOCKS4), "192.0.2.1:80"
			}
			for _, chunk := range []int{whole, 1} {
				err, _ := against(t.Context(), tc.script, chunk, p, addr)
				var failed *proxy.SOCKSError
				if !errors.As(err, &failed) {
					t.Fatalf("got %v", err)
				}
				if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if failed.Code != tc.code || failed.Target != addr || failed.Proxy.Type != p.Type {
					t.Errorf("got %#v", failed)
				}
				if got := errors.Is(err, proxy.ErrUnauthorized); got != tc.unauth {
					t.Errorf("ErrUnauthorized is %t", got)
				}
				if _, has := failed.Proxy.User.Password(); has || strings.Contains(fmt.Sprintf("%v %+v", err, failed), "hunter2") {
					t.Errorf("the password is shown: %+v", failed)
				}
			}
		})
	}
}

// untouched is a connection that nobody may use.
type untouched struct {
	net.Conn
	t *testing.T
}

func (c untouched) Read([]byte) (int, error)  { c.t.Error("something is read"); return 0, io.EOF }
func (c untouched) Write([]byte) (int, error) { c.t.Error("something is written"); return 0, io.EOF }

// What can't be said in the proxy's language is not begun.
func TestHandshakeCannotSay(t *testing.T) {
	long := strings.Repeat("n", 256)
	for name, tc := range map[string]struct {
		p    proxy.Proxy
		addr string
		want string
	}{
		"no proxy":                {proxy.Proxy{}, "a.test:80", "it is no SOCKS proxy"},
		"an HTTP proxy":           {via(proxy.HTTP), "a.test:80", "it is no SOCKS proxy"},
		"a type nobody knows":     {via(9), "a.test:80", "proxy type 9 is unknown"},
		"a long name":             {via(proxy.SOCKS5), long + ":80", "the target's name has 256 bytes, of which SOCKS carries at most 255"},
		"a long name by socks4a":  {via(proxy.SOCKS4A), long + ":80", "the target's name has 256 bytes, of which SOCKS carries at most 255"},
		"a name with NUL":         {via(proxy.SOCKS4A), "a\x00b:80", "the target's name has a NUL"},
		"no host":                 {via(proxy.SOCKS5), ":80", "the target has no host"},
		"no port":                 {via(proxy.SOCKS5), "a.test", "the target is not a host and a port"},
		"port 0":                  {via(proxy.SOCKS5), "a.test:0", "the target's port is not a number from 1 to 65535"},
		"port 65536":              {via(proxy.SOCKS5), "a.test:65536", "the target's port is not a number from 1 to 65535"},
		"port -1":                 {via(proxy.SOCKS5), "a.test:-1", "the target's port is not a number from 1 to 65535"},
		"a zone":                  {via(proxy.SOCKS5), "[fe80::1%lo]:80", "the target's address has a zone, which SOCKS can't carry and which means nothing to a proxy"},
		"a name by socks4":        {via(proxy.SOCKS4), "a.test:80", "socks4 carries no name"},
		"IPv6 by socks4":          {via(proxy.SOCKS4), "[2001:db8::1]:80", "socks4 carries no IPv6 address"},
		"IPv6 by socks4a":         {via(proxy.SOCKS4A), "[2001:db8::1]:80", "socks4a carries no IPv6 address"},
		"a user with NUL":         {via(proxy.SOCKS4, "a\x00b"), "192.0.2.1:80", "proxy user has a NUL, where socks4 ends it"},
		"a long user":             {via(proxy.SOCKS5, long, "p"), "a.test:80", "proxy user has 256 bytes: socks5 wants 1 to 255"},
		"a long password":         {via(proxy.SOCKS5, "me", long), "a.test:80", "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
		"a user without password": {via(proxy.SOCKS5, "me"), "a.test:80", "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := proxy.Handshake(t.Context(), untouched{t: t}, tc.p, tc.addr)
			var failed *proxy.SOCKSError
			if !errors.As(err, &failed) || failed.Err.Error() != tc.want || failed.Code != 0 {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// deaf is a connection that can't be written to.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, net.ErrClosed }

func TestHandshakeThatCannotWrite(t *testing.T) {
	for _, tc := range []struct {
		p    proxy.Proxy
		want string
	}{
		{via(proxy.SOCKS5), "write the greeting: "},
		{via(proxy.SOCKS4), "write the request: "},
	} {
		err := proxy.Handshake(t.Context(), deaf{}, tc.p, "192.0.2.1:80")
		if !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
}
