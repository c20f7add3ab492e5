package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	oracle "golang.org/x/net/proxy"

	"github.com/catena-http/catena/proxy"
)

// tape is a connection that plays what a server says and records what it is told.
type tape struct {
	net.Conn
	says *bytes.Reader
	told bytes.Buffer
}

func play(says []byte) *tape { return &tape{says: bytes.NewReader(says)} }

func (c *tape) Read(b []byte) (int, error)  { return c.says.Read(b) }
func (c *tape) Write(b []byte) (int, error) { return c.told.Write(b) }
func (c *tape) SetDeadline(time.Time) error { return nil }
func (c *tape) Close() error                { return nil }

// DialContext makes it what x/net dials by.
func (c *tape) DialContext(context.Context, string, string) (net.Conn, error) { return c, nil }
func (c *tape) Dial(string, string) (net.Conn, error)                         { return c, nil }

// FuzzSOCKS5 compares with x/net's client, which asks for more: that the reserved
// byte is 0. It asks for less where no user is given: it takes whatever method the
// server chooses.
func FuzzSOCKS5(f *testing.F) {
	for _, says := range []string{
		"\x05\x00" + granted + afterwards, "\x05\x02\x01\x00" + granted, "\x05\x00\x05\x00\x00\x03\x06p.test\x00\x01x",
		"\x05\x00\x05\x00\x00\x04aaaabbbbccccdddd\x00\x01x", "\x05\xff", "\x05\x01", "\x05\x02\x01\x01", "\x05\x00\x05\x05", "HTTP/1.1 400",
	} {
		f.Add([]byte(says), false)
		f.Add([]byte(says), true)
	}
	f.Fuzz(func(t *testing.T, says []byte, withUser bool) {
		p, auth := via(proxy.SOCKS5), (*oracle.Auth)(nil)
		if withUser {
			p, auth = via(proxy.SOCKS5, "me", "hunter2"), &oracle.Auth{User: "me", Password: "hunter2"}
		}
		ours, theirs := play(says), play(says)
		err := proxy.Handshake(t.Context(), ours, p, "a.test:443")
		dialer, theirErr := oracle.SOCKS5("tcp", "p.test:1080", auth, theirs)
		if theirErr == nil {
			_, theirErr = dialer.(oracle.ContextDialer).DialContext(t.Context(), "tcp", "a.test:443")
		}
		notOffered := !withUser && len(says) > 1 && says[1] != 0
		reservedSet := theirErr != nil && strings.Contains(theirErr.Error(), "reserved")
		switch {
		case err == nil != (theirErr == nil) && !notOffered && !reservedSet:
			t.Fatalf("ours: %v; x/net: %v", err, theirErr)
		case err == nil && theirErr == nil && ours.says.Len() != theirs.says.Len():
			t.Fatalf("ours leaves %d bytes unread, x/net's %d", ours.says.Len(), theirs.says.Len())
		case err == nil && notOffered:
			t.Fatal("a method was taken that was not offered")
		case err == nil && theirErr == nil && !bytes.Equal(ours.told.Bytes(), theirs.told.Bytes()):
			t.Fatalf("ours said %q, x/net %q", ours.told.Bytes(), theirs.told.Bytes())
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Fatalf("the password is shown: %v", err)
		}
	})
}

// FuzzSOCKS4 checks that eight bytes are read of a success, and none of it
// without one.
func FuzzSOCKS4(f *testing.F) {
	for _, says := range []string{granted4 + afterwards, granted4[:7], "\x00\x5b", "\x04\x5a\x00\x00\x00\x00\x00\x00", "\x05\x00", "H"} {
		f.Add([]byte(says))
	}
	f.Fuzz(func(t *testing.T, says []byte) {
		conn := play(says)
		err := proxy.Handshake(t.Context(), conn, via(proxy.SOCKS4), "192.0.2.1:80")
		good := len(says) >= 8 && says[0] == 0 && says[1] == 90
		if good != (err == nil) {
			t.Fatalf("%q: %v", says, err)
		}
		if good && conn.says.Len() != len(says)-8 {
			t.Fatalf("%d bytes are left of %d", conn.says.Len(), len(says))
		}
	})
}

// FuzzSOCKSRequest reads back what is said to a proxy that says yes to everything:
// the target and the credentials that were given, and nothing of the one passes for
// the other.
func FuzzSOCKSRequest(f *testing.F) {
	f.Add("a.test", uint16(443), "me", "hunter2", byte(2))
	f.Add("192.0.2.1", uint16(80), "", "", byte(0))
	f.Add("2001:db8::1", uint16(1), "me", "", byte(1))
	f.Add("a\x00b", uint16(65535), "a\x00b", "p", byte(1))
	f.Add("::ffff:1.2.3.4", uint16(0), strings.Repeat("u", 256), strings.Repeat("p", 255), byte(2))
	f.Fuzz(func(t *testing.T, host string, port uint16, user, password string, kind byte) {
		p := via(proxy.SOCKS4+proxy.Type(kind%3), user, password)
		yes := granted4
		if p.Type == proxy.SOCKS5 {
			yes = "\x05\x02\x01\x00" + granted
		}
		conn := play([]byte(yes))
		if err := proxy.Handshake(t.Context(), conn, p, net.JoinHostPort(host, strconv.Itoa(int(port)))); err != nil {
			if conn.told.Len() > 0 {
				t.Fatalf("%q was said before it failed: %v", conn.told.Bytes(), err)
			}
			return
		}
		said := conn.told.Bytes()
		var gotUser, gotPassword, gotHost string
		var gotPort uint16
		if p.Type == proxy.SOCKS5 {
			gotUser, gotPassword, gotHost, gotPort = readSOCKS5(t, said)
		} else {
			gotUser, gotHost, gotPort = readSOCKS4(t, said)
			gotPassword = password // which is not sent
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.Unmap().String()
		}
		if gotUser != user || gotPassword != password || gotHost != host || gotPort != port {
			t.Fatalf("%q says %q, %q, %q, %d", said, gotUser, gotPassword, gotHost, gotPort)
		}
	})
}

func readSOCKS4(t *testing.T, b []byte) (user, host string, port uint16) {
	port = binary.BigEndian.Uint16(b[2:])
	addr := netip.AddrFrom4([4]byte(b[4:8]))
	fields := strings.Split(string(b[8:]), "\x00")
	if addr == netip.MustParseAddr("0.0.0.1") && len(fields) == 3 {
		return fields[0], fields[1], port
	}
	if len(fields) != 2 {
		t.Fatalf("%q has %d fields", b, len(fields))
	}
	return fields[0], addr.String(), port
}

func readSOCKS5(t *testing.T, b []byte) (user, password, host string, port uint16) {
	b = bytes.TrimPrefix(b, []byte(greetUser))
	cut := func() string { // a string with its length before it
		n := int(b[0])
		s := string(b[1 : 1+n])
		b = b[1+n:]
		return s
	}
	b = b[1:]
	user, password = cut(), cut()
	kind := b[3]
	b = b[4:]
	switch kind {
	case 1:
		host, b = netip.AddrFrom4([4]byte(b[:4])).String(), b[4:]
	case 4:
		host, b = netip.AddrFrom16([16]byte(b[:16])).String(), b[16:]
	default:
		host = cut()
	}
	if len(b) != 2 {
		t.Fatalf("%d bytes are left for the port", len(b))
	}
	return user, password, host, binary.BigEndian.Uint16(b)
}
