package connection

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(idleServer) != "" {
		serveIdle()
		return
	}
	goleak.VerifyTestMain(m)
}
