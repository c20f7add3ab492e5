package grpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/catena-http/catena/bench/internal/servers"
)

func init() { encoding.RegisterCodec(raw{}) }

// raw is the codec of application/grpc+raw: a message is its bytes.
type raw struct{}

func (raw) Name() string                  { return "raw" }
func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...) // data is used again
	return nil
}

// echo is the service of server, written by hand.
var echo = grpc.ServiceDesc{
	ServiceName: "catena.Echo",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Say", Handler: say}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Talk", Handler: talk, ClientStreams: true, ServerStreams: true},
		{StreamName: "Count", Handler: count, ClientStreams: true},
		{StreamName: "Wait", Handler: wait, ClientStreams: true, ServerStreams: true},
	},
}

// say returns its message, or fails if it is "fail".
func say(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var message []byte
	if err := decode(&message); err != nil {
		return nil, err
	}
	grpc.SetTrailer(ctx, metadata.Pairs("x-late", "after the body"))
	if string(message) == "fail" {
		return nil, status.Error(codes.FailedPrecondition, "100 % no")
	}
	return &message, nil
}

// talk sends its head and then each message back as it comes; after "fail" it fails.
func talk(_ any, s grpc.ServerStream) error {
	if err := s.SendHeader(nil); err != nil {
		return err
	}
	for {
		var message []byte
		if err := s.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if string(message) == "fail" {
			return status.Error(codes.Aborted, "told to")
		}
		if err := s.SendMsg(&message); err != nil {
			return err
		}
	}
}

// count answers, when the client has sent everything, with how many messages came.
func count(_ any, s grpc.ServerStream) error {
	for n := 0; ; n++ {
		var message []byte
		err := s.RecvMsg(&message)
		if err == io.EOF {
			message = strconv.AppendInt(nil, int64(n), 10)
			return s.SendMsg(&message)
		}
		if err != nil {
			return err
		}
	}
}

// wait sends its head, reads nothing and tells the server how its context ended.
func wait(srv any, s grpc.ServerStream) error {
	if err := s.SendHeader(nil); err != nil {
		return err
	}
	<-s.Context().Done()
	srv.(*server).ended <- s.Context().Err()
	return s.Context().Err()
}

// server is a gRPC server on loopback with an echo and a health service.
type server struct {
	*grpc.Server
	base  string
	cert  string     // the file of its certificate, "" in clear text
	ended chan error // how the calls of Wait ended
}

// start serves until the test ends.
func start(t *testing.T, secure bool) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{base: "http://" + l.Addr().String(), ended: make(chan error, 64)}
	var opts []grpc.ServerOption
	if secure {
		f, err := servers.NewFiles(t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		c, err := credentials.NewServerTLSFromFile(f.Cert, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		s.base, s.cert = "https://"+l.Addr().String(), f.Cert
		opts = append(opts, grpc.Creds(c))
	}
	s.Server = grpc.NewServer(opts...)
	s.RegisterService(&echo, s)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Stop
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(fmt.Errorf("the server: %w", err))
		}
	})
	return s
}
