package event

// ConnectionListener is told the life of every connection of a Network. Its
// methods are called from any goroutine, one at a time for a connection, with
// no lock held. Implementations embed NopConnectionListener, which seals the
// interface so that events can be added.
type ConnectionListener interface {
	// Connected: conn stands and speaks its protocol.
	Connected(conn Connection)
	// Acquired: c took conn, new or pooled.
	Acquired(conn Connection, c Call)
	// Released: c let go of conn.
	Released(conn Connection, c Call)
	// NoNewExchanges: conn takes no new exchange from now on; once at most.
	NoNewExchanges(conn Connection, why Reason)
	// Closed: conn's socket was closed; once, and the last event of conn.
	Closed(conn Connection, why Reason)

	sealedConnectionListener()
}

// NopConnectionListener ignores every event. Embed it and override what you
// need; a type can embed both it and NopListener.
type NopConnectionListener struct{}

var _ ConnectionListener = NopConnectionListener{}

func (NopConnectionListener) Connected(Connection)              {}
func (NopConnectionListener) Acquired(Connection, Call)         {}
func (NopConnectionListener) Released(Connection, Call)         {}
func (NopConnectionListener) NoNewExchanges(Connection, Reason) {}
func (NopConnectionListener) Closed(Connection, Reason)         {}
func (NopConnectionListener) sealedConnectionListener()         {}
