package linked_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/internal/linked"
)

type item struct {
	id   int
	node linked.Node[item]
}

func ids(l *linked.List[item]) (ids []int) {
	for v := range l.All() {
		ids = append(ids, v.id)
	}
	return ids
}

// The list has what a slice would have after the same steps.
func TestList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	items := make([]item, 8)
	for i := range items {
		items[i].id = i
	}
	var l linked.List[item]
	var want []int
	for range 5000 {
		v := &items[rng.IntN(len(items))]
		at := slices.Index(want, v.id)
		if removed := l.Remove(&v.node); removed != (at >= 0) {
			t.Fatalf("Remove(%d) of %v: %t", v.id, want, removed)
		}
		if at >= 0 {
			want = slices.Delete(want, at, at+1)
		} else {
			l.Add(v, &v.node)
			want = append(want, v.id)
		}
		if got := ids(&l); !slices.Equal(got, want) || l.Len() != len(want) {
			t.Fatalf("%d values: %s", l.Len(), cmp.Diff(want, got))
		}
		if first := l.First(); (first == nil) != (len(want) == 0) || first != nil && first.id != want[0] {
			t.Fatalf("the first of %v is %v", want, first)
		}
	}
}

func TestAllLetsRemove(t *testing.T) {
	items := make([]item, 5)
	var l linked.List[item]
	for i := range items {
		items[i].id = i
		l.Add(&items[i], &items[i].node)
	}
	for v := range l.All() {
		if v.id%2 == 0 {
			l.Remove(&v.node)
		}
	}
	if diff := cmp.Diff([]int{1, 3}, ids(&l)); diff != "" {
		t.Error(diff)
	}
	for v := range l.All() {
		if v.id != 1 {
			t.Errorf("%d after the end", v.id)
		}
		break
	}
}
