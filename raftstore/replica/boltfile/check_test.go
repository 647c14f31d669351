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
