// Package interceptors are the engine's own links of the chain: RetryAndFollowUp,
// Bridge, Connect and CallServer. The client puts them in place; they are engine
// parts without a promise to users.
package interceptors
