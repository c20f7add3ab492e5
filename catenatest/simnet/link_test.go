package simnet_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// read is what one Read returned, and when.
type read struct {
	At   time.Duration
	Text string
}

// reads reads until an error and returns it last.
func reads(c io.Reader, start time.Time) []read {
	var all []read
	b := make([]byte, 1<<20)
	for {
		n, err := c.Read(b)
		if err != nil {
			return append(all, read{time.Since(start), err.Error()})
		}
		all = append(all, read{time.Since(start), string(b[:n])})
	}
}

func TestLinkTiming(t *testing.T) {
	tests := []struct {
		name string
		link simnet.Link
		want []read
	}{
		{"none", simnet.Link{}, []read{{0, "abcdef"}, {10 * ms, "gh"}, {10 * ms, "EOF"}}},
		{"latency", simnet.Link{Latency: 5 * ms}, []read{{5 * ms, "abcdef"}, {15 * ms, "gh"}, {15 * ms, "EOF"}}},
		{"drip", simnet.Link{Chunk: 4, Every: time.Second},
			[]read{{0, "abcd"}, {time.Second, "ef"}, {2 * time.Second, "gh"}, {2 * time.Second, "EOF"}}},
		{"bandwidth", simnet.Link{BytesPerSecond: 2},
			[]read{{3 * time.Second, "abcdef"}, {4 * time.Second, "gh"}, {4 * time.Second, "EOF"}}},
		{"bandwidth and drip", simnet.Link{BytesPerSecond: 2, Chunk: 4, Latency: ms},
			[]read{{2001 * ms, "abcd"}, {3001 * ms, "ef"}, {4001 * ms, "gh"}, {4001 * ms, "EOF"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				client, server := connect(t, n)
				server.SetLink(test.link)
				start := time.Now()
				go func() {
					write(t, server, "abcdef")
					time.Sleep(10 * ms)
					write(t, server, "gh")
					server.Close()
				}()
				if diff := cmp.Diff(test.want, reads(client, start)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestPacketsOfBandwidthArriveOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		server.SetLink(simnet.Link{BytesPerSecond: 1460})
		start := time.Now()
		write(t, server, string(make([]byte, 3000)))
		server.Close()
		got := reads(client, start)
		if len(got) != 4 || got[0].At != time.Second || got[1].At != 2*time.Second {
			t.Errorf("%d reads, the first two at %v and %v; want 4, 1s and 2s", len(got), got[0].At, got[1].At)
		}
	})
}

// arrivals is when each of ten bytes arrives, by the seed.
func arrivals(t *testing.T, seed uint64) (at []time.Duration) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		if n.Seed() != seed {
			t.Errorf("Seed() = %d, want %d", n.Seed(), seed)
		}
		client, server := connect(t, n)
		start := time.Now()
		go func() {
			for range 10 {
				server.Write([]byte("x"))
				time.Sleep(200 * ms)
			}
			server.Close()
		}()
		for _, r := range reads(client, start) {
			at = append(at, r.At)
		}
	}, simnet.WithSeed(seed), simnet.WithJitter(100*ms), simnet.WithLatency(10*ms))
	return at
}

func TestSeedRepeatsJitter(t *testing.T) {
	first, again, other := arrivals(t, 7), arrivals(t, 7), arrivals(t, 8)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed differs: %s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed gives the same jitter")
	}
	for i, at := range first[:10] {
		if late := at - time.Duration(i)*200*ms; late < 10*ms || late >= 110*ms {
			t.Errorf("packet %d took %v, want 10ms to 110ms", i, late)
		}
	}
}

func TestConnectionsDoNotDisturbEachOthersJitter(t *testing.T) {
	run := func(others int) (took time.Duration) {
		bubble(t, func(t *testing.T, n *simnet.Network) {
			listen(t, n, "192.0.2.9:80")
			listen(t, n, server80)
			for range others {
				dial(t, n, "192.0.2.9:80")
			}
			start := time.Now()
			dial(t, n, server80)
			took = time.Since(start)
		}, simnet.WithJitter(time.Second))
		return took
	}
	if alone, crowded := run(0), run(3); alone != crowded {
		t.Errorf("a dial took %v alone and %v after others", alone, crowded)
	}
}

// Whatever the link and the window, the stream arrives whole and in order.
func TestStreamStaysWhole(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		link := simnet.Link{
			Latency:        time.Duration(rng.Int64N(int64(time.Second))),
			Jitter:         time.Duration(rng.Int64N(int64(time.Second))),
			Window:         rng.IntN(3000),
			BytesPerSecond: rng.Int64N(2) * (1 + rng.Int64N(10000)),
			Chunk:          rng.IntN(2) * rng.IntN(500),
			Every:          time.Duration(rng.Int64N(int64(time.Millisecond))),
		}
		sent := make([]byte, 20000)
		for i := range sent {
			sent[i] = byte(rng.Uint32())
		}
		bubble(t, func(t *testing.T, n *simnet.Network) {
			client, server := connect(t, n)
			server.SetLink(link)
			go func() {
				for rest := sent; len(rest) > 0; {
					k := min(len(rest), 1+rng.IntN(4000))
					server.Write(rest[:k])
					rest = rest[k:]
				}
				server.Close()
			}()
			got, err := io.ReadAll(client)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("seed %d, %+v: %d of %d bytes, equal %v, %v", seed, link, len(got), len(sent), bytes.Equal(got, sent), err)
			}
		}, simnet.WithSeed(seed))
	}
}
