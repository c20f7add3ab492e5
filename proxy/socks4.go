package proxy

import (
	"errors"
	"fmt"
)

// The numbers of SOCKS4 and its extension 4A.
const (
	socks4Version = 4
	socks4Connect = 1
	socks4Granted = 90

	socks4ReplyVersion = 0
)

// socks4Refusals holds the meanings of reply codes.
var socks4Refusals = map[byte]string{
	91: "rejected or failed",
	92: "the proxy can't reach an identd here to ask who we are",
	93: "the identd here names another user",
}

// socks4 is the one question and answer of SOCKS4 and SOCKS4A.
func (t *talk) socks4(to target) error {
	request, err := t.socks4Request(to)
	if err != nil {
		return err
	}
	if err := t.write(request, "request"); err != nil {
		return err
	}
	const what = "reply"
	b, err := t.read(2, what)
	if err != nil {
		return err
	}
	if b[0] != socks4ReplyVersion {
		return wrongVersion(what, b[0], socks4ReplyVersion)
	}
	switch code := b[1]; code {
	case socks4Granted:
		_, err = t.read(6, what) // a port and an address, of no interest
		return err
	case 92, 93:
		t.code = code
		return unauthorized(refusal(socks4Refusals, code).Error())
	default:
		t.code = code
		return refusal(socks4Refusals, code)
	}
}

// socks4Request is the request for to. A name follows the user, and an address that
// is none, 0.0.0.1, says so (SOCKS4A).
func (t *talk) socks4Request(to target) ([]byte, error) {
	addr := [4]byte{0, 0, 0, 1}
	switch {
	case to.addr.Is6():
		return nil, fmt.Errorf("%s carries no IPv6 address", t.proxy.Type)
	case to.addr.IsValid():
		addr = to.addr.As4()
	case t.proxy.Type == SOCKS4:
		return nil, errors.New("socks4 carries no name")
	}
	b := []byte{socks4Version, socks4Connect, byte(to.port >> 8), byte(to.port)}
	b = append(append(b, addr[:]...), t.proxy.User.Username()...)
	b = append(b, 0)
	if !to.addr.IsValid() {
		b = append(append(b, to.name...), 0)
	}
	return b, nil
}
