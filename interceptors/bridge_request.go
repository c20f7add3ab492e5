package interceptors

import (
	"fmt"
	"net/http"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/internal/lifetime"
)

// networkRequest is a request for the network with the memory of the values that
// are added to it.
type networkRequest struct {
	http.Request
	gzip bool // we asked for gzip, and so decode it

	// values are those of the fields set, each a slice of its own: Connection,
	// Accept-Encoding, User-Agent, Authorization, Cookie, and "chunked".
	values [6]string
	used   int
}

// newNetworkRequest makes the network request of req. It may read the first
// bytes of a body whose size is not known, unless the call ends.
func newNetworkRequest(req *http.Request, config *chain.Config, call *lifetime.Context) (*networkRequest, error) {
	n := &networkRequest{Request: *req}
	n.RequestURI = ""
	if n.Method == "" {
		n.Method = http.MethodGet
	}
	if err := n.nameServer(req); err != nil {
		return nil, err
	}
	present := n.copyHeader(req.Header)
	if err := n.addFields(present, config); err != nil {
		return nil, err
	}
	if config.FollowUps {
		n.addUserInfo(present)
	}
	if jar := jarOf(config); jar != nil {
		if err := n.addCookies(jar.Cookies(jarURL(n.URL))); err != nil {
			return nil, err
		}
	}
	if err := n.frame(call); err != nil {
		return nil, err
	}
	return n, nil
}

// copyHeader gives n its own Header without the fields that req's own fields of
// the same name decide, and says which fields there were. The values are shared:
// an append to them makes a copy.
func (n *networkRequest) copyHeader(h http.Header) (present fieldSet) {
	const added = 4
	n.Header = make(http.Header, len(h)+added)
	for name, values := range h {
		field := fieldOf(name)
		present |= field
		switch field {
		case fieldHost, fieldContentLength, fieldTransferEncoding, fieldTrailer:
			continue
		case fieldUserAgent:
			if len(values) == 0 || values[0] == "" {
				continue
			}
			values = values[:1]
		}
		n.Header[name] = values[:len(values):len(values)]
	}
	return present
}

// set sets a field that the application did not.
func (n *networkRequest) set(name, value string) { n.Header[name] = n.list(value) }

// list is a list of one value in n's own memory.
func (n *networkRequest) list(value string) []string {
	i := n.used
	n.used++
	n.values[i] = value
	return n.values[i : i+1 : i+1]
}

func (n *networkRequest) addFields(present fieldSet, config *chain.Config) error {
	if present&fieldConnection == 0 {
		if n.Close {
			n.set("Connection", "close")
		} else {
			n.set("Connection", "Keep-Alive")
		}
	}
	if config.TransparentGzip && present&(fieldAcceptEncoding|fieldRange) == 0 && n.Method != http.MethodHead {
		n.gzip = true
		n.set("Accept-Encoding", "gzip")
	}
	if config.UserAgent != "" && present&fieldUserAgent == 0 {
		if !httpguts.ValidHeaderFieldValue(config.UserAgent) {
			return fmt.Errorf("the User-Agent of the settings, %q, has a control character", config.UserAgent)
		}
		n.set("User-Agent", config.UserAgent)
	}
	return nil
}

// addUserInfo sends the URL's user information (RFC 7617) unless the application
// has set credentials.
func (n *networkRequest) addUserInfo(present fieldSet) {
	user := n.URL.User
	if user == nil || present&fieldAuthorization != 0 {
		return
	}
	n.set("Authorization", basic(user))
}

// frame decides how the body goes out.
func (n *networkRequest) frame(call *lifetime.Context) error {
	size := bodySize(&n.Request)
	if size < 0 && n.ContentLength == 0 && len(n.TransferEncoding) == 0 {
		body, err := probe(n.Context(), call, n.Body)
		if err != nil {
			return err
		}
		if n.Body = body; body == nil {
			size = 0
		}
	}
	n.ContentLength, n.TransferEncoding = size, nil
	switch {
	case size == 0:
		n.Body, n.GetBody = nil, nil
	case size < 0:
		n.TransferEncoding = n.list("chunked")
	}
	return nil
}

// bodySize is the number of body bytes that req announces: 0 for no body, -1
// for an unknown number. ContentLength 0 with a body is unknown, as in net/http.
func bodySize(req *http.Request) int64 {
	switch {
	case !hasBody(req):
		return 0
	case len(req.TransferEncoding) > 0 && req.TransferEncoding[0] == "chunked":
		return -1
	case req.ContentLength > 0:
		return req.ContentLength
	}
	return -1
}
