// Package connection finds and keeps connections. Pool, what it is made of and
// tells, Attempt and the errors are for users; everything else is an engine part
// without a promise to them.
//
// A StreamAllocation chooses the connection of an exchange in this order:
//
//  1. the one the call holds from the exchange before, if it leads to the same
//     address, takes new exchanges and is alive;
//  2. the pool, by address. Before every reuse an HTTP/1.1 connection is probed
//     by one read that cannot wait; one that is dead, or has stray bytes, is
//     closed and the search goes on;
//  3. if the address is at its limit of open connections, the first one that
//     comes free, first come, first served;
//  4. the pool again, by the routes just resolved: a connection to the same
//     plain HTTP proxy, whatever its last origin;
//  5. a new connection by the next route. A route that fails is followed by the
//     next one. After connecting, a connection that another call has meanwhile
//     made to the same HTTP/2 server is preferred and the new one closed.
//
// Locks: Pool.mu guards everything that calls share of connections, and is held
// over no I/O, callback or event; what has to be closed, handed over or announced
// is returned and done afterwards. Every lock of the codecs is below it.
package connection
