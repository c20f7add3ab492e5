package catena

import (
	"net/http"

	"github.com/catena-http/catena/chain"
)

// RoundTripper is the client as a transport of net/http's Client, of
// httputil.ReverseProxy or of whatever else takes one. It follows nothing and
// keeps no cookies: redirects and the statuses 401, 407, 408, 421 and 503 are
// returned as they are, and user info in the URL is not sent. Interceptors,
// events, proxies and safe recovery stay. The hooks of net/http/httptrace in the
// request's context fire.
//
// The text of its errors leaves out method and URL, which a CallError has and
// net/http's Client puts in front. What that puts there is its own: the URL without
// its password, but with the secrets of its query, which Catena masks.
//
// It changes a request only by consuming and closing its Body; the response's
// Request is the request as given.
func (c *Client) RoundTripper() http.RoundTripper { return roundTripper{c} }

type roundTripper struct{ client *Client }

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.client.newCall(req, nil, true).Execute()
	if err != nil {
		return nil, chain.Unnamed(err)
	}
	return resp, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t roundTripper) CloseIdleConnections() { t.client.CloseIdleConnections() }
