package catena

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/catena-http/catena/internal/redact"
)

// Get calls url by GET. For header fields, or options of this call alone, make a
// request and give it to NewCall.
func (c *Client) Get(ctx context.Context, url string) (*http.Response, error) {
	return c.send(ctx, http.MethodGet, url, "", nil)
}

// Head calls url by HEAD.
func (c *Client) Head(ctx context.Context, url string) (*http.Response, error) {
	return c.send(ctx, http.MethodHead, url, "", nil)
}

// Post calls url by POST with body. A *bytes.Buffer, *bytes.Reader or
// *strings.Reader can be sent again where it must be, as for http.NewRequest.
func (c *Client) Post(ctx context.Context, url, contentType string, body io.Reader) (*http.Response, error) {
	return c.send(ctx, http.MethodPost, url, contentType, body)
}

// PostForm calls url by POST with data as a form.
func (c *Client) PostForm(ctx context.Context, url string, data url.Values) (*http.Response, error) {
	return c.Post(ctx, url, "application/x-www-form-urlencoded", strings.NewReader(data.Encode()))
}

func (c *Client) send(ctx context.Context, method, url, contentType string, body io.Reader) (*http.Response, error) {
	if ctx == nil {
		return nil, unsent(method, body, errors.New("the context is nil"))
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, unsent(method, body, redact.Unparsable("the URL", url, err))
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return c.Do(req)
}

// unsent is why there is no request; its body is closed.
func unsent(method string, body io.Reader, err error) error {
	if closer, ok := body.(io.Closer); ok {
		closer.Close()
	}
	return &CallError{Method: method, Err: err}
}
