package catena

import "iter"

// callList is calls in the order in which they were added. A call's part of it is
// a part of the call's own memory, so that to add and to remove it cost no
// allocation and no look-up. Whoever has the list guards both.
type callList struct {
	first, last *listed
	len         int
}

// listed is a call's part of a list; the zero value is on none.
type listed struct {
	call       *Call // nil: on no list
	prev, next *listed
}

func (l *callList) add(c *Call, p *listed) {
	*p = listed{call: c, prev: l.last}
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.len++
}

// remove reports whether p was on the list.
func (l *callList) remove(p *listed) bool {
	if p.call == nil {
		return false
	}
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	*p = listed{}
	l.len--
	return true
}

func (l *callList) all() iter.Seq[*Call] {
	return func(yield func(*Call) bool) {
		for p := l.first; p != nil && yield(p.call); p = p.next {
		}
	}
}
