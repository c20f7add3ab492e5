package report

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/workload"
)

var get16 = plan.Cell{Work: workload.Get, Proto: client.H1, Callers: 16}

func sample(rate int64, cpu float64) []measure.Sample {
	return []measure.Sample{{Requests: rate, Seconds: 1, P50: 100, P99: 2500, CPU: cpu, Allocs: 12}}
}

// run is a small run: Catena at 2.4 and fasthttp at 6 times net/http's rate.
func run() *Result {
	r := &Result{Versions: map[string]string{"Go": "1.26"}}
	r.Put(NewCell(get16, []string{"catena", "nethttp", "fasthttp"}, map[string][]measure.Sample{
		"catena": sample(48_000, 10), "nethttp": sample(20_000, 25), "fasthttp": sample(120_000, 5),
	}))
	r.Put(NewCell(plan.Cell{Work: workload.Idle, Proto: client.H1, Callers: 1}, []string{"catena", "nethttp"},
		map[string][]measure.Sample{
			"catena":  {{Requests: 1, Seconds: 1, Memory: 1400}},
			"nethttp": {{Requests: 1, Seconds: 1, Memory: 28_000, Goroutines: 2}},
		}))
	r.Put(NewCell(plan.Cell{Work: workload.Download, Proto: client.H1, Callers: 1}, []string{"catena"},
		map[string][]measure.Sample{"catena": {{Requests: 20, Seconds: 1, P50: 50_000, CPU: 30_000, Body: 100 << 20}}}))
	return r
}

func TestTables(t *testing.T) {
	var b bytes.Buffer
	for _, c := range run().Cells {
		if err := WriteText(&b, c.Table()); err != nil {
			t.Fatal(err)
		}
	}
	want := `
  client    requests/s  catena ÷ it     p50      p99  CPU a request  CPU: catena ÷ it  allocs a request
  catena        48,000         1.00  100 µs  2.50 ms        10.0 µs              1.00              12.0
  nethttp       20,000         2.40  100 µs  2.50 ms        25.0 µs              0.40              12.0
  fasthttp     120,000         0.40  100 µs  2.50 ms        5.00 µs              2.00              12.0
  client   bytes a connection  catena ÷ it  goroutines a connection
  catena                1,400         1.00                      0.0
  nethttp              28,000         0.05                      2.0
  client  MiB/s  catena ÷ it      p50  CPU a request  CPU: catena ÷ it  allocs a request
  catena  2,000         1.00  50.0 ms        30.0 ms              1.00                 -
`
	if diff := cmp.Diff(want, "\n"+b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WriteMarkdown(&b, [][]string{{"client", "rate"}, {"catena", "1"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("| client | rate |\n|---|---:|\n| catena | 1 |\n", b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "-", 0.5: "0.50", 9.94: "9.94", 9.96: "10.0", 99.6: "100", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	r := run()
	table := VerdictTable(r.Judged())
	got := map[string]string{}
	for _, line := range table[1:] {
		got[line[0]+": "+line[1]+" "+line[2]] = strings.Join(line[3:], " ")
	}
	want := map[string]string{
		"get h1 16: rate, catena ÷ nethttp ≥ 2":     "2.40 - met",
		"get h1 16: CPU, catena ÷ nethttp ≤ 0.5":    "0.40 - met",
		"get h1 16: rate, catena ÷ fasthttp ≥ 0.95": "0.40 - missed",
		"download h1 1: rate, catena ÷ curl ≥ 1":    "- - curl was not measured",
		"idle h1 1: memory ≤ 1536":                  "1,400 - met",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if fallen := r.Fallen(); len(fallen) != 1 || fallen[0].Against != "fasthttp" {
		t.Errorf("under their floors: %v, want that of fasthttp alone (its floor is 0.4675)", fallen)
	}
}

// A target that is missed says how the bound of all clients would have come out.
func TestVerdictsBesideTheBound(t *testing.T) {
	for rate, want := range map[int64]string{60_000: "0.40 0.50 missed, by socket too", 118_000: "0.40 0.98 missed"} {
		r := run()
		r.Put(NewCell(get16, []string{"catena", "fasthttp", "socket"}, map[string][]measure.Sample{
			"catena": sample(48_000, 10), "fasthttp": sample(120_000, 5), "socket": sample(rate, 4),
		}))
		for _, line := range VerdictTable(r.Judged()) {
			if got := strings.Join(line[3:], " "); line[1] == "rate, catena ÷ fasthttp" && got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

func TestSavedRunIsLoadedAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run.json")
	want := run()
	if err := want.Save(name); err != nil {
		t.Fatal(err)
	}
	got, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPutReplaces(t *testing.T) {
	r := run()
	n := len(r.Cells)
	r.Put(NewCell(get16, []string{"catena"}, nil))
	if c, _ := r.Find(get16); len(r.Cells) != n || len(c.Rows) != 1 {
		t.Errorf("%d cells, want %d; rows %v", len(r.Cells), n, c.Rows)
	}
}

// The documentation keeps what stands outside the marks, and links only to charts
// that are there; writing it again changes nothing.
func TestDocs(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := run()
	if err := WriteDocs(dir, r); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(page)
	text := string(b)
	if !strings.HasPrefix(text, "before\n") || !strings.HasSuffix(text, "\nafter\n") || strings.Contains(text, "old") {
		t.Errorf("the page is now:\n%s", text)
	}
	links := 0
	for part := range strings.SplitSeq(text, "](") {
		link, _, _ := strings.Cut(part, ")")
		if !strings.HasSuffix(link, ".svg") {
			continue
		}
		links++
		if _, err := os.Stat(filepath.Join(dir, link)); err != nil {
			t.Error(err)
		}
	}
	if want := 4; links != want { // GET by rate and by CPU, idle, download
		t.Errorf("%d charts, want %d", links, want)
	}
	if err := WriteDocs(dir, r); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(page); string(again) != text {
		t.Error("writing the same run again changed the page")
	}
}

func TestDocsWithoutMarks(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteDocs(dir, run()); err == nil {
		t.Error("a page without marks was written to")
	}
	if b, _ := os.ReadFile(page); string(b) != "mine\n" {
		t.Errorf("the page is now %q", b)
	}
}

// All who may take part in a work have colours of their own, and a legend that fits.
func TestEveryClientHasItsColour(t *testing.T) {
	for _, work := range plan.Works() {
		all := plan.Order(work)
		cell := Cell{Cell: plan.Cell{Work: work}}
		for _, name := range all {
			cell.Rows = append(cell.Rows, Row{Client: name})
		}
		var svg bytes.Buffer
		c := chart(work, "", []Cell{cell}, protocol, throughput)
		if err := c.Write(&svg); err != nil {
			t.Fatal(err)
		}
		legend := regexp.MustCompile(`<rect x="(\d+)" y="36" [^>]*fill="(.*?)"/>`).FindAllStringSubmatch(svg.String(), -1)
		colours := map[string]bool{}
		for _, m := range legend {
			colours[m[2]] = true
			if x, _ := strconv.Atoi(m[1]); x > 840 {
				t.Errorf("%s: the legend goes on at %d of 900", work, x)
			}
		}
		if len(legend) != len(all) || len(colours) != len(all) {
			t.Errorf("%s: %d in the legend, by %d colours, of %d clients", work, len(legend), len(colours), len(all))
		}
	}
}

// Every cell of a full run has a title and a chart of its own.
func TestEveryCellHasATitleAndAChart(t *testing.T) {
	r := &Result{}
	for _, cell := range plan.Full() {
		r.Put(NewCell(cell, cell.Clients(), nil))
		if name := title(cell); strings.HasPrefix(name, ",") {
			t.Errorf("%s is called %q", cell, name)
		}
	}
	groups := 0
	names := map[string]bool{}
	for _, work := range plan.Works() {
		for _, d := range r.drawings(work) {
			if names[d.name] {
				t.Errorf("two charts are called %s", d.name)
			}
			names[d.name] = true
			if !strings.HasSuffix(d.name, "-cpu") {
				groups += len(d.chart.Groups)
			}
		}
	}
	if groups != len(r.Cells) {
		t.Errorf("the charts have %d groups, for %d cells", groups, len(r.Cells))
	}
}
