package proxy

import (
	"fmt"
)

// The numbers of SOCKS5 (RFC 1928, RFC 1929).
const (
	socks5Version = 5
	socks5Connect = 1

	socks5NoAuth       = 0x00
	socks5GSSAPI       = 0x01
	socks5UserPassword = 0x02
	socks5NoMethod     = 0xff

	socks5IPv4 = 1
	socks5Name = 3
	socks5IPv6 = 4

	userPasswordVersion = 1
)

// socks5Refusals holds the meanings of reply codes (RFC 1928 section 6).
var socks5Refusals = map[byte]string{
	1: "general failure of the proxy",
	2: "not allowed by the proxy's rules",
	3: "network unreachable",
	4: "host unreachable",
	5: "connection refused",
	6: "time to live expired",
	7: "the proxy does not support the command CONNECT",
	8: "the proxy does not support this type of address",
}

// socks5 is RFC 1928's conversation for a CONNECT.
func (t *talk) socks5(to target) error {
	method, err := t.negotiate()
	if err != nil {
		return err
	}
	if method == socks5UserPassword {
		if err := t.authenticate(); err != nil {
			return err
		}
	}
	if err := t.write(socks5Request(to), "request"); err != nil {
		return err
	}
	return t.socks5Reply()
}

// negotiate settles the authentication method, which is one of those offered.
func (t *talk) negotiate() (method byte, err error) {
	offer := []byte{socks5Version, 1, socks5NoAuth}
	if t.proxy.User != nil {
		offer = []byte{socks5Version, 2, socks5NoAuth, socks5UserPassword}
	}
	if err := t.write(offer, "greeting"); err != nil {
		return 0, err
	}
	const what = "choice of authentication"
	b, err := t.read(2, what)
	if err != nil {
		return 0, err
	}
	switch method = b[1]; {
	case b[0] != socks5Version:
		return 0, wrongVersion(what, b[0], socks5Version)
	case method == socks5NoAuth, method == socks5UserPassword && t.proxy.User != nil:
		return method, nil
	case method == socks5NoMethod && t.proxy.User == nil:
		return 0, unauthorized("it wants authentication, and there are no credentials for it")
	case method == socks5NoMethod:
		return 0, unauthorized("it takes no user and password (GSSAPI, which it may want, is not supported)")
	case method == socks5GSSAPI:
		return 0, unauthorized("it wants GSSAPI authentication, which is not supported and was not offered")
	}
	return 0, fmt.Errorf("it chose authentication method %d, which was not offered", method)
}

// authenticate sends user and password (RFC 1929). Validate has seen their lengths.
func (t *talk) authenticate() error {
	user := t.proxy.User.Username()
	password, _ := t.proxy.User.Password()
	b := append([]byte{userPasswordVersion, byte(len(user))}, user...)
	b = append(append(b, byte(len(password))), password...)
	if err := t.write(b, "credentials"); err != nil {
		return err
	}
	const what = "answer to the credentials"
	answer, err := t.read(2, what)
	switch {
	case err != nil:
		return err
	case answer[0] != userPasswordVersion:
		return wrongVersion(what, answer[0], userPasswordVersion)
	case answer[1] != 0:
		return unauthorized(fmt.Sprintf("it refused user and password (status %d)", answer[1]))
	}
	return nil
}

func socks5Request(to target) []byte {
	b := []byte{socks5Version, socks5Connect, 0}
	switch {
	case to.addr.Is4():
		b = append(append(b, socks5IPv4), to.addr.AsSlice()...)
	case to.addr.Is6():
		b = append(append(b, socks5IPv6), to.addr.AsSlice()...)
	default:
		b = append(append(b, socks5Name, byte(len(to.name))), to.name...)
	}
	return append(b, byte(to.port>>8), byte(to.port))
}

// socks5Reply reads the reply to its last byte, as far as it is a success: one that
// refuses may come short. The reserved byte may be anything, and the bound address is
// of no interest.
func (t *talk) socks5Reply() error {
	const what = "reply"
	b, err := t.read(2, what)
	if err != nil {
		return err
	}
	if b[0] != socks5Version {
		return wrongVersion(what, b[0], socks5Version)
	}
	if code := b[1]; code != 0 {
		t.code = code
		return refusal(socks5Refusals, code)
	}
	if b, err = t.read(2, what); err != nil {
		return err
	}
	var n int
	switch kind := b[1]; kind {
	case socks5IPv4:
		n = 4
	case socks5IPv6:
		n = 16
	case socks5Name:
		if b, err = t.read(1, what); err != nil {
			return err
		}
		n = int(b[0])
	default:
		return fmt.Errorf("its reply has an address of the unknown type %d", kind)
	}
	_, err = t.read(n+2, what) // the port too
	return err
}

// refusal is the error of a reply code.
func refusal(meanings map[byte]string, code byte) error {
	meaning, known := meanings[code]
	if !known {
		meaning = "refused for a reason that has no meaning in the protocol"
	}
	return fmt.Errorf("%s (reply code %d)", meaning, code)
}
