package catena_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// loadTime is how long the load lasts: a minute, two seconds with -short, or what
// CATENA_LOAD says ("10s").
func loadTime(t *testing.T) time.Duration {
	if s := os.Getenv("CATENA_LOAD"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("CATENA_LOAD: %v", err)
		}
		return d
	}
	if testing.Short() {
		return 2 * time.Second
	}
	return time.Minute
}

// The load's callers, and how they keep the machine usable.
const (
	loadCallers  = 64
	longestPause = 150 * time.Millisecond
	longestCall  = 20 * time.Second // all timeouts and retries included
)

// balance counts what has to come out even.
type balance struct {
	event.NopListener
	event.NopConnectionListener
	started, ended, acquired, released atomic.Int64
	connected, taken, given, closed    atomic.Int64
}

func (b *balance) CallStart(event.Call)                            { b.started.Add(1) }
func (b *balance) CallEnd(event.Call)                              { b.ended.Add(1) }
func (b *balance) CallFailed(event.Call, error)                    { b.ended.Add(1) }
func (b *balance) ConnectionAcquired(event.Call, event.Connection) { b.acquired.Add(1) }
func (b *balance) ConnectionReleased(event.Call, event.Connection) { b.released.Add(1) }
func (b *balance) Connected(event.Connection)                      { b.connected.Add(1) }
func (b *balance) Acquired(event.Connection, event.Call)           { b.taken.Add(1) }
func (b *balance) Released(event.Connection, event.Call)           { b.given.Add(1) }
func (b *balance) Closed(event.Connection, event.Reason)           { b.closed.Add(1) }

// load is callers, a client and an unreliable server.
type load struct {
	*testing.T
	client *catena.Client
	server *unreliable
	*balance

	calls, succeeded, failed, canceled atomic.Int64
	sayings                            sync.Map // a failure of each kind, for the log
}

func TestLoadOverHTTP1(t *testing.T) {
	t.Parallel()
	runLoad(t, loadTime(t), badHTTP1, catena.WithProtocols("http/1.1"))
}

func TestLoadOverHTTP2(t *testing.T) {
	t.Parallel()
	runLoad(t, loadTime(t)/3, badHTTP2, catena.WithProtocols("h2c"))
}

// runLoad lets callers call for some time and checks that no request is lost
// without an error, that none is acted on twice that must not be, that every call
// ends, and that in the end nothing is left.
func runLoad(t *testing.T, lasts time.Duration, serve func(*unreliable, *net.TCPConn, *rand.Rand), opts ...catena.Option) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	server, serverEnds := listenUnreliably(t, seed, serve)
	// Fewer connections than callers: some wait for one.
	pool := connection.NewPool(connection.PoolOptions{MaxPerAddress: loadCallers / 2})
	l := &load{T: t, server: server, balance: &balance{}}
	var err error
	l.client, err = catena.New(append(opts,
		catena.WithPool(pool), catena.WithProxy(proxy.Proxy{}),
		catena.WithDispatcher(catena.NewDispatcher(catena.DispatcherOptions{MaxCallsPerHost: loadCallers / 4})),
		catena.WithConnectTimeout(2*time.Second), catena.WithReadTimeout(2*time.Second), catena.WithWriteTimeout(2*time.Second),
		catena.WithEventListener(l.balance), catena.WithConnectionListener(l.balance))...)
	if err != nil {
		t.Fatal(err)
	}

	end := time.Now().Add(lasts)
	var callers sync.WaitGroup
	for n := range loadCallers {
		callers.Go(func() { l.caller(n, rand.New(rand.NewPCG(seed, uint64(n))), end) })
	}
	for tick := time.NewTicker(250 * time.Millisecond); ; <-tick.C {
		if time.Now().After(end) {
			tick.Stop()
			break
		}
		server.resetSome(0.02)
	}
	callers.Wait()
	t.Logf("%d calls: %d succeeded, %d failed, %d were canceled; pool: %v",
		l.calls.Load(), l.succeeded.Load(), l.failed.Load(), l.canceled.Load(), pool.Stats())
	l.sayings.Range(func(_, err any) bool {
		t.Logf("such as: %v", err)
		return true
	})
	if l.succeeded.Load() < l.calls.Load()/2 {
		t.Error("less than half of the calls succeeded")
	}
	l.leavesNothing(pool)
	serverEnds()
}

// leavesNothing checks the books when all calls are over.
func (l *load) leavesNothing(pool *connection.Pool) {
	if s := pool.Stats(); s.Waiting != 0 || s.Open != s.Idle {
		l.Errorf("all calls are over, and the pool has %v", s)
	}
	if d := l.client.Dispatcher(); d.RunningCount() != 0 || d.QueuedCount() != 0 {
		l.Errorf("all calls are over, and %d run and %d wait", d.RunningCount(), d.QueuedCount())
	}
	if err := l.client.Shutdown(l.Context()); err != nil {
		l.Error(err)
	}
	pool.Close()
	if s := pool.Stats(); s.Open != 0 || s.Idle != 0 {
		l.Errorf("the pool is closed and has %v", s)
	}
	b := l.balance
	for what, pair := range map[string][2]*atomic.Int64{
		"calls started and ended":               {&b.started, &b.ended},
		"connections acquired and released":     {&b.acquired, &b.released},
		"acquisitions by call and connection":   {&b.acquired, &b.taken},
		"releases by call and connection":       {&b.released, &b.given},
		"connections that connected and closed": {&b.connected, &b.closed},
	} {
		if x, y := pair[0].Load(), pair[1].Load(); x != y {
			l.Errorf("%s: %d and %d", what, x, y)
		}
	}
}

// caller calls, pauses and calls again.
func (l *load) caller(n int, r *rand.Rand, end time.Time) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for i := 0; ; i++ {
		<-pause.C
		if time.Now().After(end) {
			return
		}
		l.once(fmt.Sprintf("%d-%d", n, i), r)
		pause.Reset(time.Duration(r.Int64N(int64(longestPause))))
	}
}

// once makes one call and checks how it ends.
func (l *load) once(id string, r *rand.Rand) {
	ctx, cancel := l.Context(), func() {}
	impatient := r.IntN(10) == 0
	if impatient {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(30))*time.Millisecond)
	}
	defer cancel()
	method, text, body := http.MethodGet, "", io.Reader(nil)
	switch r.IntN(4) {
	case 0:
		text = strings.Repeat("x", r.IntN(2000))
		method, body = http.MethodPost, strings.NewReader(text)
	case 1:
		text = strings.Repeat("y", 1+r.IntN(100_000))
		method, body = http.MethodPost, bodyOf(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+l.server.addr+"/", body)
	if err != nil {
		l.Error(err)
		return
	}
	req.Header.Set("X-Id", id)
	began := time.Now()
	l.calls.Add(1)
	got, err := l.run(l.client.NewCall(req), r)
	if took := time.Since(began); took > longestCall {
		l.Errorf("%s %s took %v", method, id, took)
	}
	l.judge(req, id, text, got, err, impatient)
}

// run executes or enqueues a call and reads its body, now and then but a part of
// it.
func (l *load) run(call *catena.Call, r *rand.Rand) (body string, err error) {
	enqueued, whole := r.IntN(4) == 0, r.IntN(20) > 0
	finish := func(resp *http.Response, callErr error) {
		if err = callErr; err != nil {
			return
		}
		defer resp.Body.Close()
		if !whole {
			err = errPartly
			return
		}
		var data []byte
		data, err = io.ReadAll(resp.Body)
		body = string(data)
	}
	if !enqueued {
		finish(call.Execute())
		return body, err
	}
	done := make(chan struct{})
	call.Enqueue(func(resp *http.Response, err error) {
		defer close(done)
		finish(resp, err)
	})
	<-done
	// The callback's place is free a moment later.
	return body, err
}

var errPartly = errors.New("the body was not wanted")

func (l *load) judge(req *http.Request, id, text, got string, err error, impatient bool) {
	done := l.server.count(id)
	if req.Method == http.MethodPost && done > 1 {
		l.Errorf("%s %s was acted on %d times", req.Method, id, done)
	}
	var ours *catena.CallError
	switch {
	case err == nil || err == errPartly:
		l.succeeded.Add(1)
		if done == 0 {
			l.Errorf("%s %s succeeds though the server did nothing", req.Method, id)
		}
		if err == nil && !answers(got, id, text) {
			l.Errorf("%s %s: the answer is another one's, %d bytes", req.Method, id, len(got))
		}
	case !errors.As(err, &ours):
		l.Errorf("%s %s: error %v is no *CallError", req.Method, id, err)
	case impatient && errors.Is(err, context.DeadlineExceeded):
		l.canceled.Add(1)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		l.Errorf("%s %s: nobody canceled it: %v", req.Method, id, err)
	default:
		l.failed.Add(1)
		l.mayFail(req, id, ours)
		l.sayings.LoadOrStore(sortOf(ours), err)
	}
}

// mayFail checks that a call did not fail of a connection that was found dead: what
// was not written, or may be written twice, is sent again.
func (l *load) mayFail(req *http.Request, id string, err *catena.CallError) {
	if len(err.Attempts) == 0 {
		l.Errorf("%s %s failed without an attempt: %v", req.Method, id, err)
		return
	}
	a := err.Attempts[len(err.Attempts)-1]
	again := req.Body == nil || req.GetBody != nil && !a.Written
	if a.Reused && again && a.Step == event.StepWrite && a.Why != event.ReasonTooManyRefusals {
		l.Errorf("%s %s was not sent again: %+v", req.Method, id, err)
	}
}

// sortOf groups failures.
func sortOf(err *catena.CallError) string {
	if n := len(err.Attempts); n > 0 {
		a := err.Attempts[n-1]
		return fmt.Sprint(a.Step, a.Reused, a.Written, a.Why)
	}
	return fmt.Sprintf("%T", err.Err)
}
