package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/catena-http/catena/internal/redact"
)

// newRequest makes the request for one URL.
func (c *command) newRequest(ctx context.Context, raw string) (*http.Request, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	method, body := http.MethodGet, (*source)(nil)
	switch {
	case c.options.head:
		method = http.MethodHead
	case c.options.upload != "":
		method, body, err = http.MethodPut, fileSource(c.options.upload, c.stdin), nil
		u = withName(u, c.options.upload)
	case len(c.options.data) > 0 && !c.options.asQuery:
		method = http.MethodPost
		body, err = c.dataSource()
	}
	if err == nil && c.options.asQuery {
		err = c.addQuery(u)
	}
	if err != nil {
		return nil, err
	}
	if c.options.method != "" {
		method = c.options.method
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fail(exitOther, err)
	}
	req.Method = method // an invalid one is the client's to refuse
	c.addHeaders(req)
	if body == nil {
		return req, nil
	}
	if err := body.attach(req); err != nil {
		return nil, err
	}
	c.watchUpload(req)
	return req, nil
}

// parseURL reads a URL as a user types it: http is the scheme where none is.
// Its errors show of the URL what can't be a password.
func parseURL(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fail(exitURL, redact.Unparsable("the URL", raw, err))
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fail(exitOther, fmt.Errorf("the scheme %q is not supported: http and https are", u.Scheme))
	case u.Hostname() == "":
		return nil, fail(exitURL, errors.New("malformed URL: it has no host"))
	}
	return u, nil
}

// withName is u, with the file's name where u is a folder.
func withName(u *url.URL, file string) *url.URL {
	if file == "-" || !strings.HasSuffix(u.Path, "/") {
		return u
	}
	return u.JoinPath(url.PathEscape(filepath.Base(file)))
}

func (c *command) addHeaders(req *http.Request) {
	c.logIn(req)
	if c.options.referer != "" {
		req.Header.Set("Referer", c.options.referer)
	}
	if len(c.options.data) > 0 && !c.options.asQuery {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "*/*")
	first := map[string]bool{}
	for _, f := range c.options.headers {
		name := http.CanonicalHeaderKey(f.name)
		switch {
		case name == "Host":
			req.Host = f.value
			continue
		case name == "Transfer-Encoding" && !f.without:
			req.TransferEncoding = []string{strings.ToLower(f.value)}
			continue
		case f.without && name == "User-Agent":
			req.Header.Set(name, "") // keeps the library from sending its own
			continue
		case f.without:
			req.Header.Del(name)
			continue
		case !first[name]: // takes the place of what stands there by itself
			req.Header.Del(name)
			first[name] = true
		}
		req.Header.Add(name, f.value)
	}
}

func (c *command) addQuery(u *url.URL) error {
	content, err := c.content()
	if err != nil || len(content) == 0 {
		return err
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += string(content)
	return nil
}
