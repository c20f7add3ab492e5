package main

import (
	"testing"

	"github.com/catena-http/catena/bench/internal/plan"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-work", "get,post", "-proto", "h1", "-callers", "16", "-clients", "catena", "-size", "2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.cells) != 2 || o.driver.Size != 2<<20 || len(o.driver.Clients) != 1 {
		t.Errorf("%+v", o)
	}
	o, err = parse(nil)
	if err != nil || len(o.cells) != len(plan.Full()) || o.driver.Rounds != 5 || o.driver.Idle != 5000 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parse([]string{"-short"})
	if err != nil || len(o.cells) != len(plan.Short()) || !o.driver.OnlyNeeded || o.driver.Conns >= 10000 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"-work", "sleep"}, {"-rounds", "0"}, {"-callers", "many"}, {"-server", "apache"}, {"-size", "0"}, {"now"}, {"-unknown"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
