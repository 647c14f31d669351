package memorylog

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestBoundsAfterADeletion(t *testing.T) {
	for name, c := range map[string]struct {
		delete               func(*Log)
		first, last, entries uint64
	}{
		"nothing":              {func(*Log) {}, 3, 8, 6},
		"the beginning":        {func(l *Log) { l.DeleteRange(3, 5) }, 6, 8, 3},
		"from before it began": {func(l *Log) { l.DeleteRange(1, 3) }, 4, 8, 5},
		"the end":              {func(l *Log) { l.DeleteRange(7, 8) }, 3, 6, 4},
		"beyond the end":       {func(l *Log) { l.DeleteRange(8, 99) }, 3, 7, 5},
		"all":                  {func(l *Log) { l.DeleteRange(3, 8) }, 0, 0, 0},
		"cut":                  {func(l *Log) { l.CutAfter(4) }, 3, 4, 2},
		"cut behind the end":   {func(l *Log) { l.CutAfter(8) }, 3, 8, 6},
		"cut before all":       {func(l *Log) { l.CutAfter(0) }, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var l Log
			for i := uint64(3); i <= 8; i++ {
				l.Put(&raft.Log{Index: i})
			}
			whole := l.Clone()
			c.delete(&l)
			if n := uint64(len(l.Entries)); l.First != c.first || l.Last != c.last || n != c.entries {
				t.Errorf("%d entries from %d to %d, want %d from %d to %d", n, l.First, l.Last, c.entries, c.first, c.last)
			}
			if len(whole.Entries) != 6 {
				t.Errorf("the clone has %d entries", len(whole.Entries))
			}
		})
	}
}
