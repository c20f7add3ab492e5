package catena

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"strings"

	"github.com/catena-http/catena/route"
)

// entry is an enqueued call.
type entry struct {
	call *Call
	run  func()
	host *hostQueue

	// announced is closed when queueStarted has returned; nil for a call that
	// never waited.
	announced chan struct{}

	// While it waits, guarded by the Dispatcher's lock.
	number  uint64 // the order of coming
	element *list.Element
}

// do runs the call, or its failure, and then end, also where run panics or ends
// its goroutine.
func (e *entry) do(end func(*entry)) {
	defer end(e)
	if e.announced != nil {
		<-e.announced
		e.call.queueEnded()
	}
	e.run()
}

// hostOf is the host that a call counts for.
func hostOf(c *Call) string {
	req := c.Request()
	if req == nil || req.URL == nil {
		return "" // the call will fail, in its turn
	}
	host := req.URL.Hostname()
	if name, err := route.CanonicalHost(host); err == nil {
		return name
	}
	return strings.ToLower(host)
}

// queue holds the waiting calls, a line for each host, and finds the first one
// whose host has room without a look at the others. The Dispatcher's lock guards
// it.
type queue struct {
	entries map[*Call]*entry // those that wait
	hosts   map[string]*hostQueue
	ready   readyHosts
	last    uint64 // number of the last entry
}

// hostQueue is a host that has calls.
type hostQueue struct {
	name    string
	running int       // calls that have a place
	line    list.List // of *entry
	index   int       // in readyHosts; -1: not there
}

func newQueue() queue {
	return queue{entries: map[*Call]*entry{}, hosts: map[string]*hostQueue{}}
}

// host is the host of that name, which the caller gives a call to run or to wait.
func (q *queue) host(name string) *hostQueue {
	h := q.hosts[name]
	if h == nil {
		h = &hostQueue{name: name, index: -1}
		q.hosts[name] = h
	}
	return h
}

// push lets e wait.
func (q *queue) push(e *entry, maxPerHost int) {
	q.last++
	e.number = q.last
	e.element = e.host.line.PushBack(e)
	q.entries[e.call] = e
	q.refresh(e.host, maxPerHost)
}

// take ends e's waiting.
func (q *queue) take(e *entry, maxPerHost int) {
	e.host.line.Remove(e.element)
	delete(q.entries, e.call)
	q.refresh(e.host, maxPerHost)
}

// next is the first call whose host has room, nil if there is none.
func (q *queue) next() *entry {
	if len(q.ready) == 0 {
		return nil
	}
	return q.ready[0].first()
}

// calls are the waiting calls in their order.
func (q *queue) calls() []*Call {
	entries := make([]*entry, 0, len(q.entries))
	for _, e := range q.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	calls := make([]*Call, len(entries))
	for i, e := range entries {
		calls[i] = e.call
	}
	return calls
}

// refresh puts h where it belongs after a change of its line or its running
// calls, and forgets it where it has neither.
func (q *queue) refresh(h *hostQueue, maxPerHost int) {
	waiting := h.line.Len() > 0
	ready := waiting && below(h.running, maxPerHost)
	switch {
	case ready && h.index < 0:
		heap.Push(&q.ready, h)
	case ready:
		heap.Fix(&q.ready, h.index)
	case h.index >= 0:
		heap.Remove(&q.ready, h.index)
	}
	if !waiting && h.running == 0 {
		delete(q.hosts, h.name)
	}
}

// refreshAll follows a change of the limit.
func (q *queue) refreshAll(maxPerHost int) {
	for _, h := range q.hosts {
		q.refresh(h, maxPerHost)
	}
}

func (h *hostQueue) first() *entry { return h.line.Front().Value.(*entry) }

// readyHosts is a heap of the hosts that have room and calls waiting, the one
// whose call came first on top.
type readyHosts []*hostQueue

func (r readyHosts) Len() int           { return len(r) }
func (r readyHosts) Less(i, j int) bool { return r[i].first().number < r[j].first().number }

func (r readyHosts) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].index, r[j].index = i, j
}

func (r *readyHosts) Push(h any) {
	h.(*hostQueue).index = len(*r)
	*r = append(*r, h.(*hostQueue))
}

func (r *readyHosts) Pop() any {
	old := *r
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*r = old[:len(old)-1]
	h.index = -1
	return h
}
