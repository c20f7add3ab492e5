// Package linked has a list whose links are a part of what it lists, so that to add
// and to remove cost no allocation and no look-up.
package linked

import "iter"

// List is values in the order in which they were added. The zero List is empty. Who
// has it guards it, and the nodes that are on it.
type List[T any] struct {
	first, last *Node[T]
	len         int
}

// Node is a value's part of a List, in the value's own memory; the zero Node is on
// none. A value has one for each list that it can be on.
type Node[T any] struct {
	of         *T // nil: on no list
	prev, next *Node[T]
}

// Add puts v, of which n is a part and on no list, at the end.
func (l *List[T]) Add(v *T, n *Node[T]) {
	*n = Node[T]{of: v, prev: l.last}
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	l.len++
}

// Remove takes n off the list and reports whether it was there. It may not be on
// another one.
func (l *List[T]) Remove(n *Node[T]) bool {
	if n.of == nil {
		return false
	}
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	*n = Node[T]{}
	l.len--
	return true
}

// Len is how many values are on the list.
func (l *List[T]) Len() int { return l.len }

// First is the value that was added first; nil: the list is empty.
func (l *List[T]) First() *T {
	if l.first == nil {
		return nil
	}
	return l.first.of
}

// All yields the values in order. The one that is yielded may be removed meanwhile.
func (l *List[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for n := l.first; n != nil; {
			next := n.next
			if !yield(n.of) {
				return
			}
			n = next
		}
	}
}
