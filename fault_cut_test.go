package catena_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCutAtEveryByte ends the connection after each byte of a response. Only the
// whole of it is a response; of its body, all that came before the cut is read.
func TestCutAtEveryByte(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX-T: 1\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	} {
		head := strings.LastIndex(whole, "\r\n\r\n") + 4
		if i := strings.Index(whole, "\r\n\r\n3"); i > 0 {
			head = i + 4
		}
		for cut := range len(whole) + 1 {
			for _, end := range []string{"close", "reset"} {
				synctest.Test(t, func(t *testing.T) {
					client, peer := simClient(t, func(c *peerConn) {
						if c.n > 1 {
							rawOK(c)
							return
						}
						c.readRequest()
						c.send(whole[:cut])
						if end == "reset" {
							c.reset()
						}
					})
					got := outcomeOf(client.Do(bodyRequest(t, "POST", "http://origin.test/", "hello")))
					status, rest, _ := strings.Cut(got, "\n")
					kind := map[string]string{"close": "cut short", "reset": "reset"}[end]
					switch {
					case cut == len(whole):
						if want := []string{`200 "hello"`, `204 ""`}; status != want[0] && status != want[1] {
							t.Errorf("whole, %s: %s", end, got)
						}
					case cut < head:
						if !strings.HasPrefix(status, "error: ") || rest != "read, written: may-have-been-acted-on" {
							t.Errorf("%q, %s: %s", whole[:cut], end, got)
						}
					default:
						read := "hello"[:min(contentIn(whole[head:cut]), 5)]
						if want := `200, "` + read + `", then error: ` + kind; status != want || rest != "read, written: response-begun" {
							t.Errorf("%q, %s: %s; want %s", whole[:cut], end, got, want)
						}
					}
					time.Sleep(10 * time.Millisecond) // the reset has arrived
					if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
						t.Errorf("%q, %s: the next call: %s", whole[:cut], end, got)
					}
					if n := len(peer.seen()); n != 2 {
						t.Errorf("%q, %s: %d requests, want 2", whole[:cut], end, n)
					}
				})
			}
		}
	}
}

// contentIn counts the letters of "hello" in a part of a body, framed or not.
func contentIn(part string) (n int) {
	part, _, _ = strings.Cut(part, "X-T")
	for _, ch := range part {
		if strings.ContainsRune("helo", ch) {
			n++
		}
	}
	return n
}
