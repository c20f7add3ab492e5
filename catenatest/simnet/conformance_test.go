package simnet_test

import (
	"context"
	"net"
	"testing"

	"github.com/catena-http/catena/catenatest/simnet"
	"golang.org/x/net/nettest"
)

func TestConnConformance(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		n := simnet.New()
		l, err := n.Listen("192.0.2.1:80")
		if err != nil {
			return nil, nil, nil, err
		}
		client, err := n.DialContext(context.Background(), "tcp", "192.0.2.1:80")
		if err != nil {
			return nil, nil, nil, err
		}
		server, err := l.Accept()
		return client, server, func() { n.Close() }, err
	})
}
