package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/catena-http/catena"
)

// command is one run of catena on URLs.
type command struct {
	options *options
	client  *catena.Client
	logins  *logins
	proxies *proxies
	input   []byte          // what was read of stdin; nil: nothing yet
	shown   map[uint64]bool // the connections that -v has shown, by ID

	stdin          io.Reader
	stdout, stderr io.Writer
}

// run is the command; it returns the exit code. ctx's end interrupts it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch {
	case len(args) > 0 && args[0] == "help":
		writeHelp(stdout)
		return 0
	case len(args) == 1 && args[0] == "demo":
		return demo(ctx, stdout, stderr)
	}
	o, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "catena: %v; try 'catena --help'\n", err)
		return exitUsage
	case o.help:
		writeHelp(stdout)
		return 0
	case o.version:
		fmt.Fprintf(stdout, "catena %s\n", catena.Version)
		return 0
	}
	c := &command{options: o, stdin: stdin, stdout: stdout, stderr: stderr}
	c.client, err = c.newClient()
	if err != nil {
		return c.report(ctx, err)
	}
	defer c.client.Close()
	return c.all(ctx)
}

// all calls the URLs one after the other, on one client. The first failure
// decides the exit code and keeps none of the others from being called.
func (c *command) all(ctx context.Context) int {
	code := 0
	for n, raw := range c.options.urls {
		if err := c.transfer(ctx, n, raw); err != nil {
			if own := c.report(ctx, err); code == 0 {
				code = own
			}
		}
		if ctx.Err() != nil {
			return exitInterrupted
		}
	}
	return code
}

// report prints an error, in one line unless -v asks for all attempts, and
// returns the exit code for it.
func (c *command) report(ctx context.Context, err error) int {
	code := exitCode(err)
	if ctx.Err() != nil {
		code, err = exitInterrupted, errors.New("interrupted")
	}
	if c.options.silent && !c.options.showError {
		return code
	}
	var call *catena.CallError
	if c.options.verbose && errors.As(err, &call) {
		fmt.Fprintf(c.stderr, "catena: (%d) %+v\n", code, call)
	} else {
		fmt.Fprintf(c.stderr, "catena: (%d) %v\n", code, err)
	}
	return code
}
