// Package auth answers the challenges of origins and proxies: 401 Unauthorized and 407 Proxy
// Authentication Required (RFC 9110 section 11).
//
// An [Authenticator] is asked with the refusing response and answers with the request to send next, or
// with nil to let the caller have the refusal. [Challenges] reads what the response asks for,
// [ResponseCount] says how often the call was refused already, and [Basic] is an Authenticator for one
// user and password.
package auth
