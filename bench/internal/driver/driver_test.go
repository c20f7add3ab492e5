package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/driver"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/workload"
)

// TestMain lets the test's program be the driver's children.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if ok, err := driver.Child(os.Args[1], os.Stdin, os.Stdout); ok {
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, change func(*driver.Config)) *driver.Driver {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := driver.Config{
		Rounds: 2, Duration: 5 * time.Millisecond, Warmup: time.Millisecond, Conns: 5, Idle: 5, Size: 1 << 16,
		Server: "go", Clients: []string{"catena", "nethttp"}, Exe: exe, Log: new(bytes.Buffer),
	}
	if change != nil {
		change(&cfg)
	}
	d, err := driver.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

// Each client that was asked for is measured in each round, in a process of its
// own.
func TestRun(t *testing.T) {
	d := start(t, nil)
	for _, cell := range []plan.Cell{
		{Work: workload.Get, Proto: client.H1, Callers: 2},
		{Work: workload.Upload, Proto: client.H2TLS, Callers: 1},
	} {
		c, err := d.Run(t.Context(), cell)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Rows) != 2 || c.Rows[0].Client != "catena" || c.Rows[1].Client != "nethttp" {
			t.Fatalf("%s: rows %+v", cell, c.Rows)
		}
		for _, r := range c.Rows {
			if len(r.Rounds) != 2 || r.Median.Rate() <= 0 || r.Ratio <= 0 {
				t.Errorf("%s: %+v", cell, r)
			}
		}
	}
}

func TestOnlyNeeded(t *testing.T) {
	d := start(t, func(c *driver.Config) { c.Clients, c.OnlyNeeded, c.Rounds = nil, true, 1 })
	c, err := d.Run(t.Context(), plan.Cell{Work: workload.Reconnect, Proto: client.H1TLS, Callers: 16})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) != 2 {
		t.Errorf("%d clients were measured, want Catena and net/http", len(c.Rows))
	}
}

// What a child says of its failure is in the error.
func TestAChildsFailureIsTold(t *testing.T) {
	d := start(t, func(c *driver.Config) { c.Profiles = "/no/such/folder" })
	_, err := d.Run(t.Context(), plan.Cell{Work: workload.Get, Proto: client.H1, Callers: 1})
	if err == nil || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("error: %v", err)
	}
}

func TestCancel(t *testing.T) {
	d := start(t, func(c *driver.Config) { c.Duration = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := d.Run(ctx, plan.Cell{Work: workload.Get, Proto: client.H1, Callers: 1}); err == nil {
		t.Error("a canceled run has figures")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the run ended %s after it was canceled", took)
	}
}
