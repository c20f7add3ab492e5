// Command catena calls HTTP servers from the command line, in the manner of
// curl, and shows what the library does on the way.
//
//	catena [options] URL...
//	catena demo
//	catena help
//
// Exit codes are curl's where curl has one. `catena --help` lists all options.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience is how long an interrupted call may take to end. Only a read of
// standard input can keep it longer: that can't be interrupted.
const patience = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := make(chan int, 1)
	go func() { code <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case c := <-code:
		os.Exit(c)
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	select {
	case c := <-code:
		os.Exit(c)
	case <-time.After(patience):
		os.Exit(exitInterrupted)
	}
}
