package wire_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// FuzzReader reads arbitrary bytes in an arbitrary order of types: nothing is read that
// is not there.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03"), wire.AppendString(wire.AppendUvarint([]byte{7}, 1, 300), "text"))
	f.Add([]byte("\x02\x02"), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, types, data []byte) {
		r := wire.NewReader(data)
		for _, kind := range types {
			before, read := r.Len(), 0
			switch kind % 4 {
			case 0:
				r.Byte()
			case 1:
				r.Uvarint()
			case 2:
				read = len(r.Bytes())
			case 3:
				read = r.Count(3) * 3
			}
			if read > before || r.Len() > before {
				t.Fatalf("read %d of %d, %d left", read, before, r.Len())
			}
		}
		if r.Err() != nil && r.Len() != 0 {
			t.Error("something is left after a failure")
		}
	})
}
