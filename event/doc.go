// Package event is how a call is observed: a Listener is told every step of a
// call and the reason of every decision, a ConnectionListener the life of every
// connection.
//
// Embed NopListener to write a listener, Join several, and use a Recorder in
// tests. The events, their order and the reasons are listed in docs/events.md.
//
// The package knows only the standard library and package proxy, so that
// listeners can be written without the client.
package event
