package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Progress is shown once a body takes longer than progressAfter, and again every
// progressEvery.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// progress is the line on a terminal that tells how much of a body was sent or
// has arrived.
type progress struct {
	w     io.Writer
	total int64 // negative: unknown
	began time.Time

	mu     sync.Mutex // guards the fields below: a body may be closed beside a Read
	done   int64
	next   time.Time // when it is shown again
	length int       // of the line shown; 0: none is
}

// showsProgress reports whether somebody sees the progress and nothing else is
// printed there.
func (c *command) showsProgress(n int) bool {
	return !c.options.silent && isTerminal(c.stderr) && (c.toFile(n) || !isTerminal(c.stdout))
}

func newProgress(w io.Writer, total int64) *progress {
	now := time.Now()
	return &progress{w: w, total: total, began: now, next: now.Add(progressAfter)}
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(progressEvery)
		p.show(now)
	}
}

// show prints the line. p.mu is held.
func (p *progress) show(now time.Time) {
	line := size(float64(p.done))
	if p.total > 0 {
		line += fmt.Sprintf(" of %s, %d %%", size(float64(p.total)), p.done*100/p.total)
	}
	line += ", " + size(float64(p.done)/now.Sub(p.began).Seconds()) + "/s"
	fmt.Fprintf(p.w, "\r%-*s", p.length, line)
	p.length = len(line)
}

// end leaves the last line standing, if there was one.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.length > 0 {
		p.show(time.Now())
		fmt.Fprintln(p.w)
		p.length = 0
	}
}

// watchUpload shows the progress of req's body, where somebody sees it. One that
// is sent again has none.
func (c *command) watchUpload(req *http.Request) {
	if req.Body != http.NoBody && !c.options.silent && isTerminal(c.stderr) {
		req.Body = &watchedBody{req.Body, newProgress(c.stderr, req.ContentLength)}
	}
}

// watchedBody is a request's body with its progress.
type watchedBody struct {
	io.ReadCloser
	progress *progress
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.progress.add(n)
	return n, err
}

func (b *watchedBody) Close() error {
	b.progress.end()
	return b.ReadCloser.Close()
}

// size is a number of bytes for people.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}
