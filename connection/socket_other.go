//go:build !unix

package connection

// rawSocket does not exist here: a short deadline stands in for a read that
// cannot wait.
type rawSocket struct{}

func newRawSocket(any) *rawSocket { return nil }

func (*rawSocket) quiet() bool { panic("unreachable: there is no raw socket") }

func (*rawSocket) readNow([]byte) (int, error) { panic("unreachable: there is no raw socket") }
