// Package route decides which ways lead to a server. A Network is everything
// that decides how servers are reached; an Address is a server reached through
// a Network; a Route is one concrete way there: an address, a proxy and the
// socket address to dial.
//
// A Selector yields the routes of an address in this order:
//
//  1. the proxy selector is asked once, when the first route is wanted;
//  2. proxies are taken in the selector's order, and a proxy's host (or, for a
//     direct connection, the origin's) is looked up only when the routes before
//     it are used up;
//  3. a Selection holds every route of one proxy, in the resolver's order;
//  4. routes that the Database remembers as failed are kept back and form the
//     last Selection.
//
// A proxy whose lookup fails does not keep the next one from being tried. Direct
// is tried only where the selector lists it; an empty list means direct alone.
package route
