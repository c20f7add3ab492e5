package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.254: "0.25", 1: "1", 9.96: "10", 12.34: "12.3", 99.96: "100", 999.4: "999", 999.9: "1k",
		1234: "1.2k", 105_800: "106k", 2_500_000: "2.5M", 3e9: "3G",
	} {
		if got := Short(v); got != want {
			t.Errorf("Short(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestNiceStep(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.03: 0.05, 1: 1, 1.1: 2, 3: 5, 7: 10, 21_000: 50_000} {
		if got := niceStep(v); got < want*0.999 || got > want*1.001 {
			t.Errorf("niceStep(%v) = %v, want %v", v, got, want)
		}
	}
}

var chart = Chart{
	Title: "GET <small> & quick",
	Unit:  "req/s",
	Groups: []Group{
		{"1", []Bar{{"a", 10, 9, 12}, {"b", 5, 0, 0}}},
		{"16", []Bar{{"b", 20, 0, 0}}},
		{"none", nil},
	},
}

// The chart is well-formed XML with a rectangle for each bar, drawn to scale, in
// its series' colour.
func TestChart(t *testing.T) {
	var b bytes.Buffer
	if err := chart.Write(&b); err != nil {
		t.Fatal(err)
	}
	rects := parse(t, b.Bytes(), "rect")
	const legends = 2
	if len(rects) != legends+3 {
		t.Fatalf("%d rectangles, want %d:\n%s", len(rects), legends+3, b.String())
	}
	bars := rects[legends:]
	if bars[0]["height"] != "144.0" || bars[1]["height"] != "72.0" || bars[2]["height"] != "288.0" {
		t.Errorf("bars of 10, 5 and 20 have the heights %s, %s and %s", bars[0]["height"], bars[1]["height"], bars[2]["height"])
	}
	if bars[1]["fill"] != bars[2]["fill"] || bars[0]["fill"] == bars[1]["fill"] {
		t.Errorf("colours: %v", bars)
	}
	if len(parse(t, b.Bytes(), "path")) != 1 {
		t.Error("not one range is drawn")
	}
	var again bytes.Buffer
	chart.Write(&again)
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the same chart gave other bytes")
	}
}

// The numbers over many bars are small enough not to run into each other.
func TestManyBars(t *testing.T) {
	const bars = 60
	many := Chart{Groups: []Group{{Bars: make([]Bar, bars)}}}
	for i := range many.Groups[0].Bars {
		many.Groups[0].Bars[i] = Bar{Series: "a", Value: 88_800}
	}
	var b bytes.Buffer
	if err := many.Write(&b); err != nil {
		t.Fatal(err)
	}
	texts := parse(t, b.Bytes(), "text")
	size, err := strconv.ParseFloat(texts[len(texts)-1]["font-size"], 64)
	const digit = 0.56 // of the size, as sans-serif is wide
	if room := plotWidth * barShare / bars; err != nil || 5*digit*size > room*1.05 {
		t.Errorf("numbers of size %v over bars %v wide: %v", size, room, err)
	}
}

func TestEmptyChart(t *testing.T) {
	var b bytes.Buffer
	if err := (Chart{Title: "nothing"}).Write(&b); err != nil {
		t.Fatal(err)
	}
	parse(t, b.Bytes(), "rect")
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Errorf("no number in:\n%s", b.String())
	}
}

// parse returns the attributes of all elements of that name.
func parse(t *testing.T, svg []byte, name string) (found []map[string]string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == name {
			attrs := map[string]string{}
			for _, a := range e.Attr {
				attrs[a.Name.Local] = a.Value
			}
			found = append(found, attrs)
		}
	}
}
