package catena

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// Version is the version of Catena that the default User-Agent names.
const Version = "0.1.0"

// Option configures a client; given to New and With. Of two that set the same
// thing the later wins.
type Option interface {
	apply(*settings) error
}

// CallOption is an Option that NewCall takes too, for one call. What is an Option
// only, such as interceptors, a cookie jar or an authenticator, takes a client of
// its own: derive one with With, once, and keep it.
type CallOption interface {
	Option
	callOption()
}

// settings are what options set.
type settings struct {
	config      chain.Config
	callTimeout time.Duration
	application []chain.Interceptor
	network     []chain.Interceptor
	listeners   []event.Listener
	factory     event.Factory
	secrets     []string
	logger      *zap.Logger
	dispatcher  *Dispatcher

	// reach are the changes to the Network that options asked for.
	reach []func(*route.Network)
}

func defaults() settings {
	return settings{
		logger: zap.NewNop(),
		config: chain.Config{
			ConnectTimeout:           10 * time.Second,
			ReadTimeout:              10 * time.Second,
			WriteTimeout:             10 * time.Second,
			FollowRedirects:          true,
			FollowSSLRedirects:       true,
			RetryOnConnectionFailure: true,
			TransparentGzip:          true,
			MaxFollowUps:             20,
			RetryPolicy:              chain.RetrySafe,
			UserAgent:                "catena/" + Version,
			MaxResponseHeaderBytes:   256 << 10,
			MaxResponseHeaderFields:  1000,
			MaxInterimResponses:      100,
			ExpectContinueTimeout:    time.Second,
			FollowUps:                true,
		},
	}
}

// clone is a copy whose slices can be appended to.
func (s settings) clone() settings {
	s.application = slices.Clone(s.application)
	s.network = slices.Clone(s.network)
	s.listeners = slices.Clone(s.listeners)
	s.secrets = slices.Clone(s.secrets)
	s.reach = slices.Clone(s.reach)
	return s
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

type callOption func(*settings) error

func (o callOption) apply(s *settings) error { return o(s) }
func (callOption) callOption()               {}

// applyAll applies opts in order. The error names all that make no sense.
func applyAll[O Option](s *settings, opts []O) error {
	var errs []error
	for i, o := range opts {
		if any(o) == nil {
			errs = append(errs, fmt.Errorf("opts[%d] is nil", i))
		} else if err := o.apply(s); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Options is a list of call options as one Option for New and With. To NewCall
// they are given one by one.
func Options(opts ...CallOption) Option {
	return option(func(s *settings) error {
		if err := applyAll(s, opts); err != nil {
			return fmt.Errorf("Options: %w", err)
		}
		return nil
	})
}

// WithInterceptor adds application interceptors, in order, after those already
// there. They see a call once.
func WithInterceptor(is ...chain.Interceptor) Option {
	return option(func(s *settings) error {
		if slices.ContainsFunc(is, isNoInterceptor) {
			return errors.New("WithInterceptor: an interceptor is nil")
		}
		s.application = append(s.application, is...)
		return nil
	})
}

// WithNetworkInterceptor adds network interceptors, in order, after those already
// there. They see every request on the wire, and its connection.
func WithNetworkInterceptor(is ...chain.Interceptor) Option {
	return option(func(s *settings) error {
		if slices.ContainsFunc(is, isNoInterceptor) {
			return errors.New("WithNetworkInterceptor: an interceptor is nil")
		}
		s.network = append(s.network, is...)
		return nil
	})
}

// isNoInterceptor reports whether i is nil, or a function that is.
func isNoInterceptor(i chain.Interceptor) bool {
	f, ok := i.(chain.InterceptorFunc)
	return i == nil || ok && f == nil
}

// WithEventListener adds a listener to those already there and to the factory's.
func WithEventListener(l event.Listener) CallOption {
	return callOption(func(s *settings) error {
		if l == nil {
			return errors.New("WithEventListener: the listener is nil")
		}
		s.listeners = append(s.listeners, l)
		return nil
	})
}

// WithEventListenerFactory makes a listener for each call, in NewCall and Clone.
// nil: none.
func WithEventListenerFactory(f event.Factory) Option {
	return option(func(s *settings) error { s.factory = f; return nil })
}

// WithPool keeps connections in p, which may be shared and stays the giver's to
// close.
func WithPool(p *connection.Pool) Option {
	return option(func(s *settings) error {
		if p == nil {
			return errors.New("WithPool: the pool is nil")
		}
		s.config.Pool = p
		return nil
	})
}

// WithDispatcher runs enqueued calls by d, which may be shared.
func WithDispatcher(d *Dispatcher) Option {
	return option(func(s *settings) error {
		if d == nil {
			return errors.New("WithDispatcher: the dispatcher is nil")
		}
		s.dispatcher = d
		return nil
	})
}

// WithAuthenticator answers the 401 challenges of origins. Default, and nil: none
// does. One that is an [auth.Preemptive], such as [auth.Store], is also asked
// before each request that has no credentials of its own, those after redirects
// included. A RoundTripper asks it nothing.
func WithAuthenticator(a auth.Authenticator) Option {
	return option(func(s *settings) error { s.config.Authenticator = a; return nil })
}

// WithCookieJar takes cookies from jar and gives them to it. Default, and nil: none.
func WithCookieJar(jar http.CookieJar) Option {
	return option(func(s *settings) error { s.config.CookieJar = jar; return nil })
}

// WithSecrets declares names of header fields, query parameters and cookies that
// carry secrets, on top of the usual ones. Their values are masked in errors,
// events and logs, and the fields do not follow a redirect to another origin. A
// password in a URL is masked as xxxxx, as by net/url, all else as ██. Letter
// case, hyphens and underscores do not count; "" is ignored.
func WithSecrets(names ...string) Option {
	return option(func(s *settings) error { s.secrets = append(s.secrets, names...); return nil })
}

// WithLogger gets the client's own warnings, such as an interceptor that loses a
// response body. nil, the default: none.
func WithLogger(l *zap.Logger) Option {
	return option(func(s *settings) error {
		if l == nil {
			l = zap.NewNop()
		}
		s.logger = l
		return nil
	})
}

// configure makes an option of a change to the call's settings.
func configure(change func(*chain.Config)) CallOption {
	return callOption(func(s *settings) error {
		change(&s.config)
		return nil
	})
}

// WithUserAgent sets the User-Agent of requests that have none. "" sends none.
// Default: "catena/" and the version.
func WithUserAgent(ua string) CallOption {
	return callOption(func(s *settings) error {
		if !httpguts.ValidHeaderFieldValue(ua) {
			return fmt.Errorf("WithUserAgent: %q has a control character", ua)
		}
		s.config.UserAgent = ua
		return nil
	})
}

// WithTransparentGzip asks for gzip and decodes it, where a request does not
// speak of encodings or ranges itself. Default: on.
func WithTransparentGzip(on bool) CallOption {
	return configure(func(c *chain.Config) { c.TransparentGzip = on })
}

// WithFollowRedirects follows 300, 301, 302, 303, 307 and 308. Default: on.
func WithFollowRedirects(on bool) CallOption {
	return configure(func(c *chain.Config) { c.FollowRedirects = on })
}

// WithFollowSSLRedirects follows redirects from https to http and back. Default:
// on.
func WithFollowSSLRedirects(on bool) CallOption {
	return configure(func(c *chain.Config) { c.FollowSSLRedirects = on })
}

// WithRetryOnConnectionFailure tries again, within the retry policy, when a
// connection fails. Default: on. Off, the addresses of a host are still tried in
// turn.
func WithRetryOnConnectionFailure(on bool) CallOption {
	return configure(func(c *chain.Config) { c.RetryOnConnectionFailure = on })
}

// WithMaxFollowUps bounds the redirects, challenges and repetitions of a call.
// Default: 20.
func WithMaxFollowUps(n int) CallOption {
	return callOption(func(s *settings) error {
		if n < 0 {
			return fmt.Errorf("WithMaxFollowUps: %d is negative", n)
		}
		s.config.MaxFollowUps = n
		return nil
	})
}

// WithRetryPolicy says which failed requests may be sent again. Default:
// chain.RetrySafe.
func WithRetryPolicy(p chain.RetryPolicy) CallOption {
	return callOption(func(s *settings) error {
		if p != chain.RetrySafe && p != chain.RetryLikeOkHttp {
			return fmt.Errorf("WithRetryPolicy: unknown policy %v", p)
		}
		s.config.RetryPolicy = p
		return nil
	})
}

// timeout makes an option of a duration. 0 means none.
func timeout(name string, d time.Duration, set func(*settings, time.Duration)) CallOption {
	return callOption(func(s *settings) error {
		if d < 0 {
			return fmt.Errorf("%s: %v is negative", name, d)
		}
		set(s, d)
		return nil
	})
}

// WithConnectTimeout bounds each step of connecting as a whole: TCP, TLS. Default:
// 10 s; 0: none.
func WithConnectTimeout(d time.Duration) CallOption {
	return timeout("WithConnectTimeout", d, func(s *settings, d time.Duration) { s.config.ConnectTimeout = d })
}

// WithReadTimeout bounds each wait for the peer while reading, and the head of a
// response as a whole. Default: 10 s; 0: none.
func WithReadTimeout(d time.Duration) CallOption {
	return timeout("WithReadTimeout", d, func(s *settings, d time.Duration) { s.config.ReadTimeout = d })
}

// WithWriteTimeout bounds each wait for the peer while writing. Default: 10 s; 0:
// none.
func WithWriteTimeout(d time.Duration) CallOption {
	return timeout("WithWriteTimeout", d, func(s *settings, d time.Duration) { s.config.WriteTimeout = d })
}

// WithCallTimeout bounds a call as a whole: from Execute, or from leaving the
// queue, to the end of the response's body, with all that is tried and followed.
// Default: none.
func WithCallTimeout(d time.Duration) CallOption {
	return timeout("WithCallTimeout", d, func(s *settings, d time.Duration) { s.callTimeout = d })
}

// WithExpectContinueTimeout is how long a request with "Expect: 100-continue"
// waits for an answer before its body is sent anyway. Default: 1 s; 0: not at all.
func WithExpectContinueTimeout(d time.Duration) CallOption {
	return timeout("WithExpectContinueTimeout", d, func(s *settings, d time.Duration) { s.config.ExpectContinueTimeout = d })
}

// WithResponseLimits bounds what a response may cost before its body: the bytes
// and fields of a head, and of trailers, each, and the interim (1xx) responses of
// a call. Default: 256 KiB, 1,000 and 100.
func WithResponseLimits(headerBytes, headerFields, interim int) CallOption {
	return callOption(func(s *settings) error {
		if headerBytes < 1 || headerFields < 1 || interim < 0 {
			return fmt.Errorf("WithResponseLimits: %d bytes, %d fields, %d interim responses: too small", headerBytes, headerFields, interim)
		}
		s.config.MaxResponseHeaderBytes = headerBytes
		s.config.MaxResponseHeaderFields = headerFields
		s.config.MaxInterimResponses = interim
		return nil
	})
}
