// Package route decides which ways lead to a server. A Network is everything
// that decides how servers are reached; an Address is a server reached through
// a Network; a Route is one concrete way there: an address, a proxy and the
// socket address to dial.
//
// Who looks up the origin's name depends on the way: we do for direct connections
// and for SOCKS4, which carries IPv4 addresses only; HTTP, HTTPS, SOCKS4A and SOCKS5
// proxies get the name. A proxy's own name is always ours to look up, and each of its
// addresses makes a route; through SOCKS4, with each of the origin's. An origin that is
// an IP address is looked up by nobody.
//
// A Selector yields the routes of an address in this order:
//
//  1. the proxy selector is asked once, when the first route is wanted;
//  2. proxies are taken in the selector's order, one that is listed twice at its
//     first place, and hosts are looked up only when the routes before are used up;
//  3. a Selection holds every route of one proxy, in the resolver's order;
//  4. routes that the Database remembers as failed are kept back and form the
//     last Selection.
//
// A proxy whose lookup fails, or that can't be told of the origin, does not keep the
// next one from being tried. A list with a proxy in it that proxy.Proxy.Validate
// refuses is an error, and so is the selector's. Direct is tried only where the
// selector lists it; an empty list means direct alone.
package route
