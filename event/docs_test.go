package event_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
)

// page is docs/events.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is the part of the page under a heading, up to the next one of its
// level or above.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page(t), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/events.md has no %q", heading)
	}
	level := strings.IndexByte(heading, ' ')
	next := regexp.MustCompile(fmt.Sprintf(`(?m)^#{1,%d} `, level)).FindStringIndex(text)
	if next != nil {
		text = text[:next[0]]
	}
	return text
}

var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*)\\| [^|]+\\|$")

// rows are the first two columns of the tables in text, backquotes removed.
func rows(text string) map[string]string {
	table := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		table[m[1]] = strings.TrimSpace(strings.ReplaceAll(m[2], "`", ""))
	}
	return table
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// methods are the exported methods of an interface with the names of their
// parameters after the first.
func methods(t *testing.T, file, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, m := range spec.Type.(*ast.InterfaceType).Methods.List {
			if !m.Names[0].IsExported() {
				continue
			}
			var params []string
			for _, field := range m.Type.(*ast.FuncType).Params.List {
				for _, p := range field.Names {
					params = append(params, p.Name)
				}
			}
			found[m.Names[0].Name] = strings.Join(params[1:], ", ")
		}
		return false
	})
	return found
}

// reasons are the values of the Reason constants with their names.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parse(t, "reason.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if found[value] != "" {
				t.Errorf("%s and %s have the same value", found[value], spec.Names[0])
			}
			found[value] = spec.Names[0].Name
		}
		return true
	})
	return found
}

func TestDocsListEveryEvent(t *testing.T) {
	want := methods(t, "listener.go", "Listener")
	if len(want) == 0 {
		t.Fatal("found no method of Listener")
	}
	if diff := cmp.Diff(want, rows(section(t, "## Events of a call"))); diff != "" {
		t.Errorf("events and arguments (-code +docs):\n%s", diff)
	}
}

func TestDocsListEveryConnectionEvent(t *testing.T) {
	want := methods(t, "connection_listener.go", "ConnectionListener")
	if len(want) == 0 {
		t.Fatal("found no method of ConnectionListener")
	}
	if diff := cmp.Diff(want, rows(section(t, "## Events of a connection"))); diff != "" {
		t.Errorf("events and arguments (-code +docs):\n%s", diff)
	}
}

func TestDocsListEveryReason(t *testing.T) {
	want := reasons(t)
	if len(want) == 0 {
		t.Fatal("found no Reason")
	}
	if diff := cmp.Diff(want, rows(section(t, "## Reasons"))); diff != "" {
		t.Errorf("values and constants (-code +docs):\n%s", diff)
	}
}

var (
	timeline = regexp.MustCompile("(?s)```events\n(.*?)```")
	word     = regexp.MustCompile(`^([A-Za-z]+)(?:\((.+)\))?$`)
)

// TestDocsTimelines holds the timelines of the page to the rules that recorded
// events are held to.
func TestDocsTimelines(t *testing.T) {
	blocks := timeline.FindAllStringSubmatch(section(t, "## Timelines"), -1)
	if len(blocks) == 0 {
		t.Fatal("docs/events.md has no timeline")
	}
	known := methods(t, "listener.go", "Listener")
	for _, block := range blocks {
		var events []event.Event
		for text := range strings.FieldsSeq(block[1]) {
			m := word.FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("%q is no event", text)
			}
			if _, ok := known[m[1]]; !ok {
				t.Fatalf("%q is no event", m[1])
			}
			events = append(events, inTimeline(m[1], m[2]))
		}
		if err := catenatest.CheckEvents(events); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
}

// inTimeline is an event as the page writes it.
func inTimeline(name, detail string) event.Event {
	e := event.Event{Name: name, CallID: 1}
	switch {
	case strings.HasPrefix(name, "Connection"):
		e.ConnectionID = 1
		if detail != "" {
			e.ConnectionID, _ = strconv.ParseUint(detail, 10, 64)
		}
	case strings.HasPrefix(name, "Connect"):
		e.Addr = detail
	case e.IsDecision():
		e.Why = event.ReasonFinal
	}
	if strings.HasSuffix(name, "Failed") {
		e.Err = errors.New("broken")
	}
	return e
}
