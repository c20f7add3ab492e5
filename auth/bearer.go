package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/proxy"
)

// Bearer returns an Authenticator that answers Bearer challenges with a token (RFC 6750), and origins'
// 401 without any challenge, as many APIs send it. It calls token at the first one and keeps what that
// returns. When the server refuses the token as invalid_token, or says nothing of why, by no challenge,
// it calls token again, once in a call; the calls that are refused at the same time share one such
// refresh. A token refused for any other reason is given up on, and not kept.
//
// token runs on a goroutine of its own, one at a time. Its context has the values of the call that came
// first and is done when no call waits any more; its error, also that of an empty token, ends the calls
// that wait.
//
// The token is sent to whoever asks for it, by http too, where everybody on the way can read it: RFC 6750
// section 5.3 wants TLS. An [AuthenticatorFunc] around it that looks at resp.Request.URL narrows that down.
// It is not sent ahead of a challenge, except by [Store].
func Bearer(token func(ctx context.Context) (string, error)) Authenticator {
	return &bearer{flights: tokenFlights{source: token}}
}

type bearer struct{ flights tokenFlights }

func (b *bearer) Authenticate(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
	challenge, answer := fieldsOf(resp)
	if challenge == "" {
		return nil, nil
	}
	c, ok := bearerChallenge(resp.StatusCode, Challenges(resp.Header, challenge))
	if !ok || c.Scheme == "" && asksUnreadably(resp.Header.Values(challenge)) {
		return nil, nil
	}
	if resp.Request == nil {
		return nil, errNoRequest
	}
	refused := bearerToken(resp.Request.Header.Get(answer))
	if refused != "" {
		b.flights.drop(refused)
		if invalid := c.Scheme == "" || strings.EqualFold(c.Params["error"], "invalid_token"); !invalid || refusedBefore(resp, answer) {
			return nil, nil
		}
	}
	token, err := b.token(resp.Request.Context())
	if err != nil || token == refused {
		return nil, err
	}
	return withField(resp.Request, answer, "Bearer "+token), nil
}

// token is the one that is kept, or a new one.
func (b *bearer) token(ctx context.Context) (string, error) {
	token, err := b.flights.token(ctx)
	if err != nil {
		return "", fmt.Errorf("token source of Bearer: %w", err)
	}
	return token, nil
}

func (b *bearer) ahead(to target, req *http.Request) (string, error) {
	if !strings.EqualFold(to.scheme, "Bearer") {
		return "", nil
	}
	token, err := b.token(req.Context())
	if err != nil {
		return "", err
	}
	return "Bearer " + token, nil
}

func (b *bearer) strength(status int, challenges []Challenge) int {
	if _, ok := bearerChallenge(status, challenges); ok {
		return strengthBearer
	}
	return 0
}

// bearerChallenge is the Bearer one among challenges, or the zero Challenge where an
// origin says 401 and nothing else.
func bearerChallenge(status int, challenges []Challenge) (Challenge, bool) {
	for _, c := range challenges {
		if c.Is("Bearer") {
			return c, true
		}
	}
	return Challenge{}, status == http.StatusUnauthorized && len(challenges) == 0
}

// asksUnreadably reports whether values, in which no challenge was found, say something.
func asksUnreadably(values []string) bool {
	return strings.Trim(strings.Join(values, ""), " \t,") != ""
}

// refusedBefore reports whether the refusal before resp was one of a token too.
func refusedBefore(resp *http.Response, answer string) bool {
	before := priorRefusal(resp)
	return before != nil && before.Request != nil && bearerToken(before.Request.Header.Get(answer)) != ""
}

// bearerToken is the token in a field's value, "" if it is none of Bearer.
func bearerToken(value string) string {
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// checkToken returns why a token can't be sent, without showing it.
func checkToken(token string) error {
	switch {
	case token == "":
		return errors.New("the token is empty")
	case strings.ContainsAny(token, " \t") || !httpguts.ValidHeaderFieldValue(token):
		return errors.New("the token has a space or a control character")
	}
	return nil
}
