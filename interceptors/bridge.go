package interceptors

import (
	"errors"
	"net/http"

	"github.com/catena-http/catena/chain"
)

// Bridge turns the application's request into a network request and the
// response back. The network request has a Header of its own, says in
// ContentLength and TransferEncoding how its body is framed, and has what the
// application did not care to set: Connection, Accept-Encoding, User-Agent,
// cookies and the credentials of the URL.
//
// A field that is in the application's Header is the application's to decide,
// in whatever case its name is written and even if it has no value: then it is
// neither set nor sent.
type Bridge struct{}

// Intercept answers c.Request(), which ValidateRequest has nothing against.
func (Bridge) Intercept(c chain.Chain) (*http.Response, error) {
	link := c.(*chain.RealInterceptorChain)
	req, config := c.Request(), c.Config()
	if req.RequestURI != "" && config.FollowUps {
		// A RoundTripper, which a reverse proxy may use, ignores it.
		return nil, errors.New("RequestURI is set: it belongs to a server's request and can't be sent")
	}
	n, err := newNetworkRequest(req, config, link.Run().Allocation.Life())
	if err != nil {
		return nil, err
	}
	resp, err := link.Proceed(&n.Request)
	if err != nil {
		return nil, err
	}
	if jar := jarOf(config); jar != nil {
		if cookies := resp.Cookies(); len(cookies) > 0 {
			jar.SetCookies(jarURL(n.URL), cookies)
		}
	}
	if n.gzip && isGzip(resp) {
		resp = gunzip(resp, link.Run().Allocation)
	}
	resp.Request = req
	return resp, nil
}
