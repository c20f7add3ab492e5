package event_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/catena-http/catena/event"
)

func TestJoinDropsAndFlattens(t *testing.T) {
	a, b, c := &spy{}, &spy{}, &spy{}
	nop := event.NopListener{}
	tests := []struct {
		name string
		join event.Listener
		want []*spy
	}{
		{"none", event.Join(), nil},
		{"nothing that listens", event.Join(nil, nop, &nop, event.Join(nil)), nil},
		{"one", event.Join(nil, a, nop), []*spy{a}},
		{"several", event.Join(a, b), []*spy{a, b}},
		{"nested", event.Join(event.Join(c, a), nil, event.Join(event.Join(b))), []*spy{c, a, b}},
		{"twice the same", event.Join(a, a), []*spy{a, a}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			switch len(test.want) {
			case 0:
				if test.join != event.Listener(event.NopListener{}) {
					t.Errorf("got %T, want NopListener{}", test.join)
				}
			case 1:
				if test.join != event.Listener(test.want[0]) {
					t.Errorf("got %T, want the one listener itself", test.join)
				}
			default:
				var parts []*spy
				v := reflect.ValueOf(test.join)
				for i := range v.Len() {
					parts = append(parts, v.Index(i).Interface().(*spy))
				}
				if !slices.Equal(parts, test.want) {
					t.Errorf("got %p, want %p", parts, test.want)
				}
			}
		})
	}
}

func TestJoinLeavesItsPartsAlone(t *testing.T) {
	a, b, c, d := &spy{}, &spy{}, &spy{}, &spy{}
	base := event.Join(a, b)
	event.Join(base, c)
	event.Join(base, d).CallEnd(newCall(1, "/"))
	base.CallEnd(newCall(1, "/"))
	for i, want := range []int{2, 2, 0, 1} {
		if got := len([]*spy{a, b, c, d}[i].got); got != want {
			t.Errorf("listener %d was told %d events, want %d", i, got, want)
		}
	}
}

// TestJoinForwards calls every method the interface has, so that none that is
// added later goes untested.
func TestJoinForwards(t *testing.T) {
	for m := range exported[event.Listener]() {
		t.Run(m.Name, func(t *testing.T) {
			first, second := &spy{}, &spy{}
			args := samples(m.Type)
			reflect.ValueOf(event.Join(first, second)).MethodByName(m.Name).Call(args)
			wantNoted(t, first.got, m.Name, args)
			wantNoted(t, second.got, m.Name, args)
		})
	}
}

func TestJoinConnectionForwards(t *testing.T) {
	for m := range exported[event.ConnectionListener]() {
		t.Run(m.Name, func(t *testing.T) {
			first, second := &connectionSpy{}, &connectionSpy{}
			args := samples(m.Type)
			reflect.ValueOf(event.JoinConnection(first, second)).MethodByName(m.Name).Call(args)
			wantNoted(t, first.got, m.Name, args)
			wantNoted(t, second.got, m.Name, args)
		})
	}
}

func TestJoinConnectionDropsAndFlattens(t *testing.T) {
	a, b, c := &connectionSpy{}, &connectionSpy{}, &connectionSpy{}
	nop := event.NopConnectionListener{}
	if got := event.JoinConnection(nil, nop, &nop); got != event.ConnectionListener(nop) {
		t.Errorf("none: got %T, want NopConnectionListener{}", got)
	}
	if got := event.JoinConnection(nil, a, nop); got != event.ConnectionListener(a) {
		t.Errorf("one: got %T, want the one listener itself", got)
	}
	event.JoinConnection(event.JoinConnection(a, b), nil, c).Connected(fakeConnection{1})
	for i, s := range []*connectionSpy{a, b, c} {
		if len(s.got) != 1 {
			t.Errorf("nested: listener %d was told %d events, want 1", i, len(s.got))
		}
	}
}

func TestJoinLetsPanicsThrough(t *testing.T) {
	first, last := &spy{}, &spy{}
	defer func() {
		if v := recover(); v != "mine" {
			t.Errorf("recovered %v, want the listener's own value", v)
		}
		if len(first.got) != 1 || len(last.got) != 0 {
			t.Errorf("told %d before the panic and %d after it, want 1 and 0", len(first.got), len(last.got))
		}
	}()
	event.Join(first, panics{}, last).CallStart(newCall(1, "/"))
}

type panics struct{ event.NopListener }

func (panics) CallStart(event.Call) { panic("mine") }

func TestJoinDoesNotAllocate(t *testing.T) {
	l := event.Join(panics{}, panics{})
	var c event.Call = newCall(1, "/")
	if n := testing.AllocsPerRun(100, func() { l.DNSStart(c, "example.com") }); n != 0 {
		t.Errorf("an event costs %v allocations, want none", n)
	}
}

// exported yields the methods of an interface that others may call.
func exported[T any]() func(yield func(reflect.Method) bool) {
	return func(yield func(reflect.Method) bool) {
		i := reflect.TypeFor[T]()
		for n := range i.NumMethod() {
			if m := i.Method(n); m.IsExported() && !yield(m) {
				return
			}
		}
	}
}

func wantNoted(t *testing.T, got [][]any, name string, args []reflect.Value) {
	t.Helper()
	want := []any{name}
	for _, a := range args {
		want = append(want, a.Interface())
	}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %v, want once %v", got, want)
	}
}
