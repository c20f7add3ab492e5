// Package chain is what a call runs through: interceptors, each of which gets a
// Chain, may change the request, hands it on with Proceed and may change the
// response that comes back.
//
//	application interceptors    see the call once; no connection yet
//	RetryAndFollowUp            tries again, follows redirects and challenges
//	Bridge                      application request to network request and back
//	Connect                     finds the connection
//	network interceptors        see every request on the wire and its connection
//	CallServer                  writes the request, reads the response
//
// An application interceptor may answer without Proceed, or call it several
// times, one after the other, having read or closed the earlier response's body.
// A network interceptor calls it exactly once, with the same host and port.
//
// Run, Infos, RealInterceptorChain and NewCallError are engine parts without a
// promise to users.
package chain
