package catena

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
)

// stage runs calls named by a letter and their host, such as "a1" for the first
// call to host a, through a Dispatcher. A call runs until it is told to finish.
// It lives in a synctest bubble.
type stage struct {
	event.NopListener
	t          *testing.T
	dispatcher *Dispatcher
	client     *Client

	mu       sync.Mutex // guards the fields below
	log      []string
	names    map[event.Call]string
	calls    map[string]*Call
	finishes map[string]chan struct{}
	onQueued func(name string)
}

func newStage(t *testing.T, opts DispatcherOptions) *stage {
	s := &stage{t: t, names: map[event.Call]string{}, calls: map[string]*Call{}, finishes: map[string]chan struct{}{}}
	if opts.Idle == nil {
		opts.Idle = func() { s.note("idle") }
	}
	client, err := New()
	if err != nil {
		t.Fatal(err)
	}
	s.client, s.dispatcher = client, NewDispatcher(opts)
	return s
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *stage) name(c event.Call) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[c]
}

func (s *stage) DispatcherQueueStart(c event.Call) {
	name := s.name(c)
	s.note("%s waits", name)
	if s.onQueued != nil {
		s.onQueued(name)
	}
}

func (s *stage) DispatcherQueueEnd(c event.Call) { s.note("%s waited", s.name(c)) }

func (s *stage) call(name string) *Call {
	c := s.client.NewCall(requestTo("http://"+name[:1]+".test/"), WithEventListener(s))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[c], s.calls[name], s.finishes[name] = name, c, make(chan struct{})
	return c
}

func (s *stage) enqueue(names ...string) {
	for _, name := range names {
		c := s.call(name)
		s.dispatcher.enqueue(c, func() {
			s.note("%s runs", name)
			<-s.finishes[name]
		})
		synctest.Wait()
	}
}

func (s *stage) finish(names ...string) {
	for _, name := range names {
		close(s.finishes[name])
		synctest.Wait()
	}
}

func (s *stage) remove(name string) bool {
	removed := s.dispatcher.remove(s.calls[name], func() { s.note("%s fails", name) })
	synctest.Wait()
	return removed
}

// expect compares what was noted since it was last asked.
func (s *stage) expect(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.log); diff != "" {
		s.t.Errorf("what happened (-want +got):\n%s", diff)
	}
	s.log = nil
}

// holds checks the accessors.
func (s *stage) holds(running, queued []string) {
	s.t.Helper()
	name := func(calls []*Call) (names []string) {
		for _, c := range calls {
			names = append(names, s.name(c))
		}
		return names
	}
	if diff := cmp.Diff(running, name(s.dispatcher.Running())); diff != "" {
		s.t.Errorf("running (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(queued, name(s.dispatcher.Queued())); diff != "" {
		s.t.Errorf("queued (-want +got):\n%s", diff)
	}
	if got, want := s.dispatcher.RunningCount(), len(running); got != want {
		s.t.Errorf("RunningCount is %d, want %d", got, want)
	}
	if got, want := s.dispatcher.QueuedCount(), len(queued); got != want {
		s.t.Errorf("QueuedCount is %d, want %d", got, want)
	}
}

func requestTo(target string) *http.Request {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return &http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}
}

// staged is a test of a stage in virtual time.
func staged(t *testing.T, opts DispatcherOptions, test func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, opts)
		defer s.client.Close()
		test(s)
		synctest.Wait()
		if n := len(s.dispatcher.queue.hosts) + len(s.dispatcher.queue.ready) + s.dispatcher.places; n != 0 {
			t.Errorf("the dispatcher still remembers %d things", n)
		}
	})
}
