package event

// ConnectionRecorder is a ConnectionListener that keeps every event, as Recorder
// does for calls: "Connected", "Acquired", "Released", "NoNewExchanges",
// "Closed". One may serve any number of Networks.
type ConnectionRecorder struct{ log }

var _ ConnectionListener = (*ConnectionRecorder)(nil)

// NewConnectionRecorder returns a ConnectionRecorder without events.
func NewConnectionRecorder() *ConnectionRecorder { return &ConnectionRecorder{} }

func (r *ConnectionRecorder) Connected(conn Connection) {
	r.add(Event{Name: "Connected"}.on(conn))
}

func (r *ConnectionRecorder) Acquired(conn Connection, c Call) {
	r.addOf(c, "Acquired", Event{}.on(conn))
}

func (r *ConnectionRecorder) Released(conn Connection, c Call) {
	r.addOf(c, "Released", Event{}.on(conn))
}

func (r *ConnectionRecorder) NoNewExchanges(conn Connection, why Reason) {
	r.add(Event{Name: "NoNewExchanges", Why: why}.on(conn))
}

func (r *ConnectionRecorder) Closed(conn Connection, why Reason) {
	r.add(Event{Name: "Closed", Why: why}.on(conn))
}

func (r *ConnectionRecorder) sealedConnectionListener() {}
