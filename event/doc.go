// Package event is how a call is observed: a Listener is told every step of a
// call and the reason of every decision, a ConnectionListener the life of every
// connection.
//
// The package knows only the standard library and package proxy, so that
// listeners can be written without the client.
package event
