// Package grpc_test calls a real gRPC server by bare HTTP/2: what gRPC needs of a
// client is what shows whether its streams are duplex.
package grpc_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
