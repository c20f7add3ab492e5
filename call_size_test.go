package catena

import (
	"testing"
	"unsafe"
)

// A call is one allocation. The runtime rounds it up to 1792 bytes, 8 of them its
// own header; the next size is 2048, which each call would pay for.
func TestCallFitsItsAllocation(t *testing.T) {
	const most = 1792 - 8
	if size := unsafe.Sizeof(Call{}); unsafe.Sizeof(uintptr(0)) == 8 && size > most {
		t.Errorf("a Call has %d bytes, more than %d", size, most)
	}
}
