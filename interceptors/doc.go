// Package interceptors is an engine part without a promise to users: the engine's
// own links of the chain, RetryAndFollowUp, Bridge, Connect and CallServer, which
// the client puts in place.
package interceptors
