// Package auth answers the challenges of origins and proxies: 401 Unauthorized and 407 Proxy
// Authentication Required (RFC 9110 section 11).
//
// An [Authenticator] is asked with the refusing response and answers with the request to send next, or
// with nil to let the caller have the refusal. [Basic], [Digest] and [Bearer] are Authenticators for one
// user, password or source of tokens; [Strongest] picks among them by what the server offers, and [Store]
// sends credentials ahead of the refusal where one came before. For others, [Challenges] reads what a
// response asks for and [ResponseCount] says how often the call was answered already.
package auth
