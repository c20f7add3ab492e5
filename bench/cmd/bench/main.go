// Command bench measures Catena against other clients: see docs/performance.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/catena-http/catena/bench/internal/driver"
)

func main() {
	if len(os.Args) == 2 {
		if ok, err := driver.Child(os.Args[1], os.Stdin, os.Stdout); ok {
			exit(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2) // flag has said why
	}
	exit(run(ctx, o, os.Stdout, os.Stderr))
}

func exit(err error) {
	switch {
	case err == nil:
		os.Exit(0)
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
