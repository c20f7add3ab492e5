package catena_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/catena-http/catena"

// floors is the house, in tenths of a floor, so that an internal room can stand
// between two: a room imports rooms of lower floors only. Rooms of one floor do not
// know each other.
var floors = map[string]int{
	"internal/linked":                  0,
	"internal/redact":                  0,
	"internal/wire":                    0,
	"proxy":                            0,
	"auth":                             10,
	"event":                            10,
	"connection/http1":                 10,
	"connection/http2":                 10,
	"connection/http2/internal/oracle": 9, // for tests
	"event/zaplog":                     20,
	"internal/lifetime":                15,
	"route":                            20,
	"connection":                       30,
	"chain":                            40,
	"interceptors":                     50,
	".":                                60,
	"cmd/catena":                       70,

	// For tests, which are on no floor themselves.
	"catenatest/simnet": 0,
	"catenatest":        80,
}

// source is a Go file of the module.
type source struct {
	path string
	room string // the folder, "." for the root
	test bool
	file *ast.File
}

// sources parses the module's files; modules within it are not its own.
func sources(t *testing.T) (files []source) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == "." {
				return nil
			}
			_, other := os.Stat(filepath.Join(p, "go.mod"))
			if other == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		files = append(files, source{p, path.Dir(p), strings.HasSuffix(p, "_test.go"), f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// imports are the rooms that a file imports.
func (s source) imports(t *testing.T) (rooms []string) {
	t.Helper()
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if p == module {
			rooms = append(rooms, ".")
		} else if room, ok := strings.CutPrefix(p, module+"/"); ok {
			rooms = append(rooms, room)
		}
	}
	return rooms
}

func forTests(room string) bool {
	return room == "catenatest" || strings.HasPrefix(room, "catenatest/")
}

func TestImportsRunDownward(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		floor, known := floors[s.room]
		if !known {
			t.Errorf("%s: room %s has no floor: give it one in this test", s.path, s.room)
			continue
		}
		for _, room := range s.imports(t) {
			below, known := floors[room]
			switch {
			case !known:
				t.Errorf("%s imports %s, which has no floor", s.path, room)
			case below >= floor:
				t.Errorf("%s, on floor %d, imports %s, which is on floor %d", s.path, floor, room, below)
			case s.room == "catenatest/simnet":
				t.Errorf("%s imports %s: the network for tests knows no room", s.path, room)
			case forTests(room) && !forTests(s.room):
				t.Errorf("%s imports %s, which is for tests alone", s.path, room)
			}
		}
	}
}

// Whoever reads the documentation finds a word on everything that is exported. A
// method that implements an interface means what it means there.
func TestExportedSymbolsAreDocumented(t *testing.T) {
	files := sources(t)
	explained := explainedMethods(files)
	for _, s := range files {
		if s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, name := range undocumented(decl, explained) {
				t.Errorf("%s: %s has no doc comment", s.path, name)
			}
		}
	}
}

// explainedMethods are the names of the methods of the module's interfaces, and
// of some of the standard library's.
func explainedMethods(files []source) map[string]bool {
	explained := map[string]bool{}
	for _, name := range strings.Fields("Error Unwrap String Is Timeout Temporary Read Write Close") {
		explained[name] = true
	}
	for _, name := range strings.Fields("LocalAddr RemoteAddr SetDeadline SetReadDeadline SetWriteDeadline") {
		explained[name] = true
	}
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			i, ok := n.(*ast.InterfaceType)
			if !ok || s.test {
				return true
			}
			for _, method := range i.Methods.List {
				for _, name := range method.Names {
					explained[name.Name] = true
				}
			}
			return false
		})
	}
	return explained
}

func undocumented(decl ast.Decl, explained map[string]bool) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		receiver := ""
		if d.Recv != nil {
			if receiver = receiverOf(d); !ast.IsExported(receiver) || explained[d.Name.Name] {
				return nil
			}
			receiver += "."
		}
		if d.Name.IsExported() && d.Doc == nil {
			names = append(names, receiver+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// receiverOf is the name of the type that d is a method of.
func receiverOf(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
