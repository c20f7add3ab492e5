package http2

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2/hpack"
)

const testMaxString = 300

// decodeBlocks decodes blocks, each in parts of a size, until one is broken.
func decodeBlocks(blocks [][]byte, part int, write func([]byte) error, end func() error) error {
	for _, block := range blocks {
		for len(block) > 0 {
			n := min(part, len(block))
			if err := write(block[:n]); err != nil {
				return err
			}
			block = block[n:]
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

func ours(blocks [][]byte, part int, muted bool) (fields []string, d fieldDecoder, err error) {
	d = fieldDecoder{maxString: testMaxString, muted: muted}
	d.emit = func(name, value string) { fields = append(fields, name+": "+value) }
	err = decodeBlocks(blocks, part, d.write, d.end)
	return fields, d, err
}

func theirs(blocks [][]byte, part int, muted bool) (fields []string, err error) {
	d := hpack.NewDecoder(fieldTableSize, func(f hpack.HeaderField) { fields = append(fields, f.Name+": "+f.Value) })
	d.SetMaxStringLength(testMaxString)
	d.SetEmitEnabled(!muted)
	err = decodeBlocks(blocks, part, func(p []byte) error { _, err := d.Write(p); return err }, d.Close)
	return fields, err
}

// FuzzFieldDecoder holds the decoder to x/net's.
func FuzzFieldDecoder(f *testing.F) {
	for _, block := range encodedBlocks() {
		f.Add(uint8(0), false, bytes.Join(block, []byte("\xff\x00\xff\x00")))
		f.Add(uint8(1), true, bytes.Join(block, []byte("\xff\x00\xff\x00")))
	}
	zeros := strings.Repeat("\x00", 253) // '0' has five bits; three more are no padding
	f.Add(uint8(0), false, []byte("\x40\x01n\xff\x7e"+zeros))
	f.Fuzz(func(t *testing.T, part uint8, muted bool, data []byte) {
		blocks := bytes.Split(data, []byte("\xff\x00\xff\x00"))
		size := int(part)
		if part == 0 {
			size = len(data) + 1
		}
		got, d, err := ours(blocks, size, muted)
		want, wantErr := theirs(blocks, size, muted)
		if wantErr != nil && strings.Contains(wantErr.Error(), "size update MUST") {
			return // it takes no two of them in a row (RFC 7541 4.2 does)
		}
		if !alike(err, wantErr) {
			t.Fatalf("error %v, x/net's %v", err, wantErr)
		}
		if !slices.Equal(want, got) { // Diff takes its time
			t.Error(cmp.Diff(want, got))
		}
		checkTable(t, &d.table)
	})
}

// alike reports whether two decoders fail for the same reason, as far as it matters.
// Of a string that is too long and broken further on, x/net's tells the former.
func alike(ours, theirs error) bool {
	if (ours == nil) != (theirs == nil) {
		return false
	}
	long := errors.Is(theirs, hpack.ErrStringLength)
	return errors.Is(ours, hpack.ErrStringLength) == long || long && errors.Is(ours, hpack.ErrInvalidHuffman)
}

// checkTable checks what holds for the table at any time.
func checkTable(t *testing.T, table *fieldTable) {
	t.Helper()
	size := 0
	for _, f := range table.fields[table.first:] {
		size += f.size()
	}
	if size != table.size || size > fieldTableSize-table.less {
		t.Errorf("the fields cost %d, the table says %d of %d", size, table.size, fieldTableSize-table.less)
	}
}

// encodedBlocks are sequences of blocks as servers send them.
func encodedBlocks() map[string][][]byte {
	encode := func(blocks ...[]hpack.HeaderField) (out [][]byte) {
		var b bytes.Buffer
		enc := hpack.NewEncoder(&b)
		for i, fields := range blocks {
			b.Reset()
			if i == 2 {
				enc.SetMaxDynamicTableSize(200)
			}
			for _, f := range fields {
				enc.WriteField(f)
			}
			out = append(out, bytes.Clone(b.Bytes()))
		}
		return out
	}
	plain := []hpack.HeaderField{
		{Name: ":status", Value: "200"}, {Name: "server", Value: "nginx/1.22.1"},
		{Name: "date", Value: "Sun, 29 Nov 2026 10:00:00 GMT"}, {Name: "x-own", Value: "\x01\x02\x03 not shorter"},
		{Name: "set-cookie", Value: "secret", Sensitive: true},
	}
	var many []hpack.HeaderField
	for i := range 200 {
		many = append(many, hpack.HeaderField{Name: fmt.Sprintf("x-%d", i), Value: strings.Repeat("v", i)})
	}
	var again [][]byte
	for range 40 {
		again = append(again, nginxBlock())
	}
	return map[string][][]byte{
		"one":            encode(plain),
		"indexed":        encode(plain, plain, plain, plain),
		"full":           encode(many, plain, many[150:]),
		"too long":       encode([]hpack.HeaderField{{Name: "x", Value: strings.Repeat("v", 2*testMaxString)}}),
		"literals again": again,
	}
}

// nginxBlock is a block as nginx sends it: literals, to be indexed each time.
func nginxBlock() []byte {
	b := []byte{0x88}
	for _, f := range []struct {
		index byte
		value string
	}{{54, "nginx/1.22.1"}, {33, "Sun, 29 Nov 2026 10:00:00 GMT"}, {31, "application/json"}, {28, "52"}} {
		v := hpack.AppendHuffmanString(nil, f.value)
		b = append(b, 0x40|f.index, 0x80|byte(len(v)))
		b = append(b, v...)
	}
	return b
}

func TestFieldDecoder(t *testing.T) {
	for name, blocks := range encodedBlocks() {
		for _, part := range []int{1, 2, 7, 1 << 20} {
			t.Run(fmt.Sprint(name, " in parts of ", part), func(t *testing.T) {
				got, d, err := ours(blocks, part, false)
				want, wantErr := theirs(blocks, part, false)
				if !errors.Is(err, wantErr) {
					t.Errorf("error %v, x/net's %v", err, wantErr)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				checkTable(t, &d.table)
			})
		}
	}
}

func TestBrokenFields(t *testing.T) {
	tests := map[string]struct {
		block string
		want  error
	}{
		"index 0":                       {"\x80", errIndex},
		"index of an empty table":       {"\xbe", errIndex},
		"name of an empty table":        {"\x7e\x01v", errIndex},
		"an integer without end":        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", errInteger},
		"a cut integer":                 {"\xff", errFieldCut},
		"a cut name":                    {"\x40\x05na", errFieldCut},
		"a cut value":                   {"\x40\x01n\x05v", errFieldCut},
		"a table that is too large":     {"\x3f\xe2\x1f", errTableSize},
		"a resize after a field":        {"\x40\x01n\x01v\x20", errResize},
		"a name that is too long":       {"\x40\x7f\xff\x7f", hpack.ErrStringLength},
		"Huffman code with bad padding": {"\x40\x01n\x81\x00", hpack.ErrInvalidHuffman},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := ours([][]byte{[]byte(tt.block)}, 1<<20, false); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// A server may shrink the table and enlarge it again (RFC 7541 4.2), which x/net's
// decoder does not take.
func TestTwoResizes(t *testing.T) {
	blocks := [][]byte{[]byte("\x40\x01n\x01v\xbe"), []byte("\x20\x3f\xe1\x1f\x82"), []byte("\xbe")}
	got, _, err := ours(blocks, 1<<20, false)
	if want := []string{"n: v", "n: v", ":method: GET"}; !cmp.Equal(got, want) || !errors.Is(err, errIndex) {
		t.Errorf("%q, %v; want %q and %v", got, err, want, errIndex)
	}
}

// A literal that comes again is not decoded again.
func TestLiteralsAgainCostNothing(t *testing.T) {
	d := fieldDecoder{maxString: testMaxString, emit: func(string, string) {}}
	block := nginxBlock()
	one := func() {
		if err := errors.Join(d.write(block), d.end()); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		one() // the table gets its memory
	}
	if n := testing.AllocsPerRun(100, one); n > 1 {
		t.Errorf("%v allocations for a block, want at most 1", n)
	}
}

func BenchmarkFieldDecoder(b *testing.B) {
	block := nginxBlock()
	b.Run("ours", func(b *testing.B) {
		d := fieldDecoder{maxString: testMaxString, emit: func(string, string) {}}
		b.ReportAllocs()
		for b.Loop() {
			d.write(block)
			d.end()
		}
	})
	b.Run("xnet", func(b *testing.B) {
		d := hpack.NewDecoder(fieldTableSize, func(hpack.HeaderField) {})
		b.ReportAllocs()
		for b.Loop() {
			d.Write(block)
			d.Close()
		}
	})
}

// BenchmarkFieldInParts adds a part to a field of which 256 KiB have come.
func BenchmarkFieldInParts(b *testing.B) {
	part := bytes.Repeat([]byte("v"), 32)
	d := fieldDecoder{maxString: 1 << 20, emit: func(string, string) {}}
	d.write([]byte("\x40\x01n\x7f\x81\xff\x3f")) // the value has 1 MiB
	d.write(make([]byte, 256<<10))
	come := len(d.rest)
	for b.Loop() {
		d.rest = d.rest[:come]
		if err := d.write(part); err != nil {
			b.Fatal(err)
		}
	}
}
