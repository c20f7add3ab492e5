package event

// Reason says why a decision was taken: one of the constants below. Their
// values are stable; new ones may be added.
type Reason string

// Reasons of a RetryDecision.
const (
	// The attempt is made again.
	ReasonStaleConnection Reason = "stale-connection" // a pooled connection turned out to be dead
	ReasonNextRoute       Reason = "next-route"       // another address or proxy is left
	ReasonNotProcessed    Reason = "not-processed"    // the server said it did not process the request

	// The attempt is not made again.
	ReasonRetryDisabled      Reason = "retry-disabled"         // WithRetryOnConnectionFailure(false)
	ReasonCanceled           Reason = "canceled"               // by Cancel, the caller's context or the call timeout
	ReasonTimeout            Reason = "timeout"                // a read or write timeout
	ReasonProtocolError      Reason = "protocol-error"         // the peer broke HTTP
	ReasonCertificate        Reason = "certificate"            // the peer's certificate or name was refused
	ReasonRequestBody        Reason = "request-body"           // the request's own body failed
	ReasonOneShotBody        Reason = "one-shot-body"          // the body can't be sent again (no GetBody)
	ReasonMayHaveBeenActedOn Reason = "may-have-been-acted-on" // written, and not idempotent
	ReasonResponseBegun      Reason = "response-begun"         // the application has the response's head
	ReasonNoMoreRoutes       Reason = "no-more-routes"         // nothing else is left to try
	ReasonTooManyRefusals    Reason = "too-many-refusals"      // refused streams, more than are forgiven
	ReasonNotRecoverable     Reason = "not-recoverable"        // an error that another attempt would meet again
	ReasonUnsupported        Reason = "unsupported"            // the protocols of the settings exclude the URL: "h2c" and https
)

// Reasons of a FollowUpDecision.
const (
	// The response is followed.
	ReasonRedirect           Reason = "redirect"            // 300, 301, 302, 303, 307, 308
	ReasonAuthenticate       Reason = "authenticate"        // 401 answered by the authenticator
	ReasonProxyAuthenticate  Reason = "proxy-authenticate"  // 407 answered by the proxy authenticator
	ReasonRequestTimeout     Reason = "request-timeout"     // 408
	ReasonServiceUnavailable Reason = "service-unavailable" // 503 with Retry-After: 0
	ReasonMisdirected        Reason = "misdirected"         // 421 on a coalesced connection (not yet)
	ReasonExpectationFailed  Reason = "expectation-failed"  // 417, again without Expect

	// The response is the call's answer. ReasonOneShotBody and
	// ReasonRetryDisabled are used too.
	ReasonFinal             Reason = "final"               // nothing to follow
	ReasonNotFollowed       Reason = "not-followed"        // follow-ups are not this call's: RoundTripper, or redirects are off
	ReasonSSLRedirect       Reason = "ssl-redirect"        // from https to http or back, and that is off
	ReasonBadLocation       Reason = "bad-location"        // no, empty or unusable Location
	ReasonAuthenticatorDone Reason = "authenticator-done"  // no authenticator, or it gave up
	ReasonRetryAfter        Reason = "retry-after"         // the server asked to wait
	ReasonRepeated          Reason = "repeated"            // the prior response, or the credentials refused, were the same; once is enough
	ReasonTooManyFollowUps  Reason = "too-many-follow-ups" // the call fails
	ReasonFailed            Reason = "failed"              // working out the next request failed, and so does the call
)

// Reasons of a ReuseDecision; ReasonUnreadBody is used too.
const (
	ReasonHeld      Reason = "held"       // the call holds it from an earlier exchange
	ReasonPooled    Reason = "pooled"     // found in the pool by address
	ReasonSameProxy Reason = "same-proxy" // found in the pool: it leads to the same plain HTTP proxy
	ReasonCoalesced Reason = "coalesced"  // found in the pool by a resolved route and a certificate (not yet)
	ReasonDuplicate Reason = "duplicate"  // another call connected to the same HTTP/2 server meanwhile
	ReasonUnhealthy Reason = "unhealthy"  // passed over: dead, or with stray bytes
	ReasonRetired   Reason = "retired"    // passed over: takes no new exchanges
	ReasonOtherHost Reason = "other-host" // passed over: the next request goes elsewhere
)

// Reasons of a RouteDecision.
const (
	ReasonNext      Reason = "next"       // its turn
	ReasonPostponed Reason = "postponed"  // failed before: tried last, or that turn has come
	ReasonSameRoute Reason = "same-route" // the route of a connection that went stale, without another lookup
)

// Reasons why a connection takes no new exchanges or is closed;
// ReasonUnhealthy, ReasonDuplicate and ReasonCanceled are used too.
const (
	ReasonConnectionClose Reason = "connection-close" // asked for by either side, or HTTP/1.0
	ReasonExchangeFailed  Reason = "exchange-failed"  // an exchange on it failed
	ReasonUnreadBody      Reason = "unread-body"      // a body was closed with too much of it unread
	ReasonNotReusable     Reason = "not-reusable"     // framing by close, stray bytes, a request sent in part
	ReasonUpgraded        Reason = "upgraded"         // 101: it is no longer HTTP
	ReasonGoAway          Reason = "goaway"           // the server's GOAWAY
	ReasonIdleTimeout     Reason = "idle-timeout"     // idle for the keep-alive time, which may be none
	ReasonIdleLimit       Reason = "idle-limit"       // more idle connections than are kept
	ReasonEvicted         Reason = "evicted"          // EvictAll, CloseIdleConnections, or its client was closed
	ReasonPoolClosed      Reason = "pool-closed"      // the pool was closed
	ReasonConnectFailed   Reason = "connect-failed"   // it never stood
)
