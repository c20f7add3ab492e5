package catena

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
)

func TestDispatcherRunsAtOnceBelowTheLimits(t *testing.T) {
	staged(t, DispatcherOptions{}, func(s *stage) {
		s.enqueue("a1", "a2", "b1")
		s.expect("a1 runs", "a2 runs", "b1 runs")
		s.holds([]string{"a1", "a2", "b1"}, nil)
		s.finish("a1", "b1", "a2")
		s.expect("idle")
		s.holds(nil, nil)
	})
}

func TestDispatcherLimitsAllCalls(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 2}, func(s *stage) {
		s.enqueue("a1", "b1", "c1", "d1")
		s.expect("a1 runs", "b1 runs", "c1 waits", "d1 waits")
		s.holds([]string{"a1", "b1"}, []string{"c1", "d1"})
		s.finish("b1")
		s.expect("c1 waited", "c1 runs")
		s.finish("a1", "c1", "d1")
		s.expect("d1 waited", "d1 runs", "idle")
	})
}

func TestDispatcherLimitsCallsToAHost(t *testing.T) {
	staged(t, DispatcherOptions{MaxCallsPerHost: 1}, func(s *stage) {
		s.enqueue("a1", "a2", "a3", "b1", "b2")
		s.expect("a1 runs", "a2 waits", "a3 waits", "b1 runs", "b2 waits")
		s.finish("b1")
		s.expect("b2 waited", "b2 runs")
		s.finish("a1")
		s.expect("a2 waited", "a2 runs")
		s.finish("b2", "a2", "a3")
		s.expect("a3 waited", "a3 runs", "idle")
	})
}

func TestDispatcherLetsCallsPassAFullHost(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 2, MaxCallsPerHost: 1}, func(s *stage) {
		s.enqueue("a1", "b1", "a2", "a3", "c1", "b2")
		s.holds([]string{"a1", "b1"}, []string{"a2", "a3", "c1", "b2"})
		s.expect("a1 runs", "b1 runs", "a2 waits", "a3 waits", "c1 waits", "b2 waits")
		s.finish("b1") // a is full
		s.expect("c1 waited", "c1 runs")
		s.finish("c1")
		s.expect("b2 waited", "b2 runs")
		s.finish("a1")
		s.expect("a2 waited", "a2 runs")
		s.finish("a2", "a3", "b2")
		s.expect("a3 waited", "a3 runs", "idle")
	})
}

func TestDispatcherFollowsNewLimits(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 1, MaxCallsPerHost: 1}, func(s *stage) {
		s.enqueue("a1", "a2", "b1", "b2", "c1")
		s.expect("a1 runs", "a2 waits", "b1 waits", "b2 waits", "c1 waits")
		s.dispatcher.SetMaxCalls(2)
		synctest.Wait()
		s.expect("b1 waited", "b1 runs")
		s.dispatcher.SetMaxCallsPerHost(-1)
		s.dispatcher.SetMaxCalls(3)
		synctest.Wait()
		s.expect("a2 waited", "a2 runs")
		s.dispatcher.SetMaxCalls(1) // leaves running calls alone
		s.finish("a1", "a2")
		s.holds([]string{"b1"}, []string{"b2", "c1"})
		s.dispatcher.SetMaxCallsPerHost(1)
		s.dispatcher.SetMaxCalls(-1)
		synctest.Wait()
		s.expect("c1 waited", "c1 runs")
		s.dispatcher.SetMaxCallsPerHost(0)
		synctest.Wait()
		s.expect("b2 waited", "b2 runs")
		s.finish("b1", "b2", "c1")
	})
}

func TestDispatcherLimitsAreAsDocumented(t *testing.T) {
	for _, test := range []struct {
		opts              DispatcherOptions
		hosts, each, want int
	}{
		{DispatcherOptions{}, 20, 10, 64},
		{DispatcherOptions{}, 2, 10, 10},
		{DispatcherOptions{MaxCallsPerHost: -1}, 1, 100, 64},
		{DispatcherOptions{MaxCalls: -1}, 20, 10, 100},
		{DispatcherOptions{MaxCalls: -1, MaxCallsPerHost: -1}, 20, 10, 200},
	} {
		t.Run(fmt.Sprintf("%+d and %+d", test.opts.MaxCalls, test.opts.MaxCallsPerHost), func(t *testing.T) {
			staged(t, test.opts, func(s *stage) {
				end := make(chan struct{})
				for host := range test.hosts {
					for range test.each {
						c := s.client.NewCall(requestTo(fmt.Sprintf("http://host%d.test/", host)))
						s.dispatcher.enqueue(c, func() { <-end })
					}
				}
				if got := s.dispatcher.RunningCount(); got != test.want {
					t.Errorf("%d calls run, want %d", got, test.want)
				}
				close(end)
			})
		})
	}
}

func TestDispatcherKnowsHostsByName(t *testing.T) {
	staged(t, DispatcherOptions{MaxCallsPerHost: 1}, func(s *stage) {
		targets := []string{"http://Bücher.test:8080/", "https://xn--bcher-kva.TEST/b", "http://[::1]:1/", "http://[::1]:2/", "//:bad", ""}
		end := make(chan struct{})
		for _, target := range targets {
			req := &http.Request{}
			if target != "" {
				req.URL, _ = url.Parse(target)
			}
			s.dispatcher.enqueue(s.client.NewCall(req), func() { <-end })
		}
		s.dispatcher.enqueue(s.client.NewCall(nil), func() { <-end })
		if got := s.dispatcher.RunningCount(); got != 3 {
			t.Errorf("%d calls run, want one for each of 3 hosts", got)
		}
		close(end)
	})
}

func TestDispatcherTracksCallsOfExecute(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
		x, y := s.call("x1"), s.call("y1")
		s.dispatcher.started(x)
		s.dispatcher.started(y)
		s.enqueue("a1", "b1")
		s.expect("a1 runs", "b1 waits")
		s.holds([]string{"x1", "y1", "a1"}, []string{"b1"})
		s.dispatcher.finished(x) // frees no place
		s.holds([]string{"y1", "a1"}, []string{"b1"})
		s.finish("a1", "b1")
		s.expect("b1 waited", "b1 runs")
		s.dispatcher.finished(y)
		s.expect("idle")
	})
}

func TestDispatcherRemovesWaitingCalls(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
		s.enqueue("a1", "a2", "b1")
		if s.remove("a1") {
			t.Error("a running call was removed")
		}
		if !s.remove("a2") {
			t.Error("a waiting call was not removed")
		}
		if s.remove("a2") {
			t.Error("a call was removed twice")
		}
		s.expect("a1 runs", "a2 waits", "b1 waits", "a2 waited", "a2 fails")
		s.holds([]string{"a1"}, []string{"b1"})
		s.finish("a1", "b1")
		s.expect("b1 waited", "b1 runs", "idle")
	})
}

func TestDispatcherRestsWhenFailuresAreTold(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
		s.enqueue("a1", "a2")
		told := make(chan struct{})
		s.dispatcher.remove(s.calls["a2"], func() { <-told })
		s.finish("a1")
		s.expect("a1 runs", "a2 waits", "a2 waited")
		s.holds(nil, nil)
		close(told)
		synctest.Wait()
		s.expect("idle")
	})
}

func TestDispatcherIsIdleEachTime(t *testing.T) {
	var s *stage
	again := true
	idle := func() {
		s.note("idle with %d running", s.dispatcher.RunningCount()) // no lock is held
		if again {
			again = false
			c := s.call("z1")
			s.dispatcher.enqueue(c, func() {})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s = newStage(t, DispatcherOptions{Idle: idle})
		defer s.client.Close()
		s.enqueue("a1")
		s.finish("a1")
		s.expect("a1 runs", "idle with 0 running", "idle with 0 running")
	})
}

func TestDispatcherQueueEventsKeepTheirOrder(t *testing.T) {
	t.Run("removed while told", func(t *testing.T) {
		staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
			s.onQueued = func(name string) {
				if !s.remove(name) {
					t.Errorf("%s did not wait", name)
				}
				s.note("%s told", name)
			}
			s.enqueue("a1", "a2")
			s.expect("a1 runs", "a2 waits", "a2 told", "a2 waited", "a2 fails")
			s.finish("a1")
		})
	})
	t.Run("promoted while told", func(t *testing.T) {
		staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
			s.onQueued = func(name string) {
				s.finish("a1")
				s.holds([]string{name}, nil)
				s.note("%s told", name)
			}
			s.enqueue("a1", "a2")
			s.expect("a1 runs", "a2 waits", "a2 told", "a2 waited", "a2 runs")
			s.finish("a2")
		})
	})
	t.Run("listener panics", func(t *testing.T) {
		staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
			s.onQueued = func(name string) { panic(name) }
			func() {
				defer func() {
					if got := recover(); got != "a2" {
						t.Errorf("recovered %v, want a2", got)
					}
				}()
				s.enqueue("a1", "a2")
			}()
			s.finish("a1", "a2")
			s.expect("a1 runs", "a2 waits", "a2 waited", "a2 runs", "idle")
		})
	})
}

func TestDispatcherFreesThePlaceOfACallThatBreaksOff(t *testing.T) {
	t.Run("Goexit", func(t *testing.T) {
		staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
			s.dispatcher.enqueue(s.call("a1"), runtime.Goexit)
			synctest.Wait()
			s.enqueue("b1")
			s.finish("b1")
			s.expect("idle", "b1 runs", "idle")
		})
	})
	t.Run("panic", func(t *testing.T) {
		staged(t, DispatcherOptions{}, func(s *stage) {
			d := s.dispatcher
			e := &entry{call: s.call("a1"), run: func() { panic("broken") }, host: d.queue.host("a.test")}
			d.running.Add(e.call, &e.call.running)
			d.places, e.host.running = 1, 1
			func() {
				defer func() {
					if got := recover(); got != "broken" {
						t.Errorf("recovered %v: the panic should go on", got)
					}
				}()
				e.do(d.vacate)
			}()
			s.holds(nil, nil)
			s.expect("idle")
		})
	})
}

func TestDispatcherCancelsAllCalls(t *testing.T) {
	staged(t, DispatcherOptions{MaxCalls: 1}, func(s *stage) {
		x := s.call("x1")
		s.dispatcher.started(x)
		s.enqueue("a1", "a2")
		s.dispatcher.CancelAll()
		for _, name := range []string{"x1", "a1", "a2"} {
			if !s.calls[name].IsCanceled() {
				t.Errorf("%s was not canceled", name)
			}
		}
		s.finish("a1", "a2")
		s.dispatcher.finished(x)
	})
}
