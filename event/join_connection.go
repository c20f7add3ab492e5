package event

// JoinConnection is Join for connection listeners: in order, nils and
// NopConnectionListeners dropped, joined ones flattened, NopConnectionListener{}
// if none is left, the listener itself if one is. A panic goes on.
func JoinConnection(listeners ...ConnectionListener) ConnectionListener {
	var all joinedConnection
	for _, l := range listeners {
		switch l := l.(type) {
		case nil, NopConnectionListener, *NopConnectionListener:
		case joinedConnection:
			all = append(all, l...)
		default:
			all = append(all, l)
		}
	}
	switch len(all) {
	case 0:
		return NopConnectionListener{}
	case 1:
		return all[0]
	}
	return all
}

// joinedConnection is to ConnectionListener what joined is to Listener.
type joinedConnection []ConnectionListener

var _ ConnectionListener = joinedConnection(nil)

func (j joinedConnection) Connected(conn Connection) {
	for _, l := range j {
		l.Connected(conn)
	}
}

func (j joinedConnection) Acquired(conn Connection, c Call) {
	for _, l := range j {
		l.Acquired(conn, c)
	}
}

func (j joinedConnection) Released(conn Connection, c Call) {
	for _, l := range j {
		l.Released(conn, c)
	}
}

func (j joinedConnection) NoNewExchanges(conn Connection, why Reason) {
	for _, l := range j {
		l.NoNewExchanges(conn, why)
	}
}

func (j joinedConnection) Closed(conn Connection, why Reason) {
	for _, l := range j {
		l.Closed(conn, why)
	}
}

func (joinedConnection) sealedConnectionListener() {}
