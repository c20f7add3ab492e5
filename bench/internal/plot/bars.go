// Package plot draws bar charts as SVG, readable on light and dark pages.
package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Chart is groups of bars over one axis that begins at zero.
type Chart struct {
	Title  string
	Unit   string // of the axis
	Groups []Group
	// Series are names in the order of their colours, so that charts agree on them,
	// also of series that have no bar here. Others come after them.
	Series []string
}

// Group is bars side by side over one name.
type Group struct {
	Name string
	Bars []Bar
}

// Bar is one value and, where High is over Low, the range it was seen in. Bars of
// the same series have one colour in all groups.
type Bar struct {
	Series           string
	Value, Low, High float64
}

// The chart's measures in pixels.
const (
	width, height = 900, 400
	left, right   = 64, 16
	top, bottom   = 76, 36
	plotWidth     = width - left - right
	plotHeight    = height - top - bottom
	barShare      = 0.84 // of its group's width that bars fill
)

// palette tells the series apart, also for the colour-blind.
var palette = []string{
	"#0072b2", "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00",
	"#6a3d9a", "#8a7f3d", "#7f7f7f", "#b3b3b3", "#e3d82f",
}

// Write draws the chart. The same chart gives the same bytes.
func (c Chart) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	b.WriteString("<style>text{fill:#24292f}@media(prefers-color-scheme:dark){text{fill:#d0d7de}}</style>\n")
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15" font-weight="bold">%s</text>`+"\n", left, escape(c.Title))
	colors := c.colors()
	c.legend(&b, colors)
	scale := c.axis(&b)
	for i, g := range c.Groups {
		c.group(&b, i, g, colors, scale)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// colors are the series' colours.
func (c Chart) colors() map[string]string {
	colors := map[string]string{}
	give := func(name string) {
		if colors[name] == "" {
			colors[name] = palette[len(colors)%len(palette)]
		}
	}
	for _, name := range c.Series {
		give(name)
	}
	for _, g := range c.Groups {
		for _, bar := range g.Bars {
			give(bar.Series)
		}
	}
	return colors
}

// legend names the series that have a bar, in the order in which they first come.
func (c Chart) legend(b *strings.Builder, colors map[string]string) {
	x := left
	named := map[string]bool{}
	for _, g := range c.Groups {
		for _, bar := range g.Bars {
			if named[bar.Series] {
				continue
			}
			named[bar.Series] = true
			fmt.Fprintf(b, `<rect x="%d" y="36" width="12" height="12" fill="%s"/>`, x, colors[bar.Series])
			fmt.Fprintf(b, `<text x="%d" y="46">%s</text>`+"\n", x+16, escape(bar.Series))
			x += 30 + 7*len(bar.Series)
		}
	}
}

// axis draws the lines and numbers of the value axis and returns the pixels of
// one unit.
func (c Chart) axis(b *strings.Builder) (scale float64) {
	most := 0.0
	for _, g := range c.Groups {
		for _, bar := range g.Bars {
			most = max(most, bar.Value, bar.High)
		}
	}
	step := niceStep(most / 5)
	end := max(step*math.Ceil(most/step), step)
	scale = plotHeight / end
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-6, top-10, escape(c.Unit))
	for i := 0; float64(i)*step <= end*1.0001; i++ {
		y := top + plotHeight - float64(i)*step*scale
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#8c959f" stroke-opacity="0.35"/>`, left, width-right, y, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, y+4, Short(float64(i)*step))
	}
	return scale
}

func (c Chart) group(b *strings.Builder, i int, g Group, colors map[string]string, scale float64) {
	room := float64(plotWidth) / float64(len(c.Groups))
	start := left + room*float64(i)
	fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" font-size="12">%s</text>`+"\n",
		start+room/2, height-bottom+20, escape(g.Name))
	if len(g.Bars) == 0 {
		return
	}
	each := min(room*barShare/float64(len(g.Bars)), 60)
	size := min(9, each/2.75) // of five characters as wide as the bar
	x := start + (room-each*float64(len(g.Bars)))/2
	floor := float64(top + plotHeight)
	for _, bar := range g.Bars {
		h := bar.Value * scale
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>`,
			x+1, floor-h, each-2, h, colors[bar.Series], escape(bar.Series+": "+Short(bar.Value)))
		above := floor - h
		if bar.High > bar.Low {
			lo, hi, mid := floor-bar.Low*scale, floor-bar.High*scale, x+each/2
			fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6" stroke="#57606a" fill="none"/>`,
				mid, lo, hi, mid-3, lo, mid-3, hi)
			above = hi
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="%.3g">%s</text>`+"\n", x+each/2, above-3, size, Short(bar.Value))
		x += each
	}
}

// niceStep is the next of 1, 2 and 5 times a power of ten.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// Short is v with two or three digits: "1.2k".
func Short(v float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}} {
		if v >= unit.of*0.9995 {
			return digits(v/unit.of) + unit.name
		}
	}
	return digits(v)
}

func digits(v float64) string {
	places := 0
	switch {
	case v == 0:
	case v < 1:
		places = 2
	case v < 99.95:
		places = 1
	}
	s := fmt.Sprintf("%.*f", places, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return b.String()
}
