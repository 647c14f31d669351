package boltfile

import (
	"encoding/binary"
	"testing"
)

func TestALogMustNotHaveGaps(t *testing.T) {
	check := indexCheck{}
	for _, c := range []struct {
		index uint64
		whole bool
	}{{7, true}, {8, true}, {10, false}, {9, true}, {9, false}} {
		key := binary.BigEndian.AppendUint64(nil, c.index)
		if err := check.next(element{key: key}); (err == nil) != c.whole {
			t.Errorf("entry %d: %v", c.index, err)
		}
	}
}

func TestAnEntryMustNotHaveGaps(t *testing.T) {
	check := indexCheck{}
	for i, c := range []struct {
		index uint64
		chunk uint16
		whole bool
	}{{7, 1, false}, {7, 0, true}, {7, 2, false}, {7, 1, true}, {7, 1, false}, {8, 2, false}, {7, 2, true}, {8, 0, true}, {8, 2, false}, {8, 1, true}} {
		key := binary.BigEndian.AppendUint64(nil, c.index)
		if c.chunk > 0 {
			key = binary.BigEndian.AppendUint16(key, c.chunk)
		}
		if err := check.next(element{key: key}); (err == nil) != c.whole {
			t.Errorf("%d, chunk %d of entry %d: %v", i, c.chunk, c.index, err)
		}
	}
}
