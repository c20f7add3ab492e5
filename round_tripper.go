package catena

import "net/http"

// RoundTripper is the client as a transport of net/http's Client, of
// httputil.ReverseProxy or of whatever else takes one. It follows nothing and
// keeps no cookies: redirects and the statuses 401, 407, 408, 421 and 503 are
// returned as they are, and user info in the URL is not sent. Interceptors,
// events, proxies and safe recovery stay. The hooks of net/http/httptrace in the
// request's context fire.
//
// An http.Client puts errors into a *url.Error, whose text has the URL without its
// password; secrets in its query, which a CallError masks, are shown.
//
// It changes a request only by consuming and closing its Body; the response's
// Request is the request as given.
func (c *Client) RoundTripper() http.RoundTripper { return roundTripper{c} }

type roundTripper struct{ client *Client }

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.client.newCall(req, nil, true).Execute()
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t roundTripper) CloseIdleConnections() { t.client.CloseIdleConnections() }
