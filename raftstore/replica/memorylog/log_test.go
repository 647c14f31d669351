package memorylog

import (
	"os"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
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

// TestKept: a power cut may take what is being deleted, and no more.
func TestKept(t *testing.T) {
	var inDeletion func()
	log, err := segments.OpenWith(t.TempDir(), func(*os.File) error {
		if inDeletion != nil {
			inDeletion()
		}
		return nil
	}, 8<<10, 8<<10)
	if err != nil {
		t.Fatal(err)
	}
	turns := InTurns(log)
	defer turns.Close()
	if err := turns.StoreLogs([]*raft.Log{{Index: 1}, {Index: 2}, {Index: 3}}); err != nil {
		t.Fatal(err)
	}
	kept := func() uint64 {
		var c Contents
		turns.LookAt(&c)
		return c.Kept
	}
	if n := kept(); n != 3 {
		t.Errorf("%d entries are kept, want 3", n)
	}
	inDeletion = func() {
		if last, _ := log.LastIndex(); last == 3 && kept() != 1 {
			t.Errorf("%d entries are kept while the second is deleted, want 1", kept())
		}
	}
	if err := turns.DeleteRange(2, 3); err != nil || kept() != 1 {
		t.Errorf("%d entries are kept in the end, want 1: %v", kept(), err)
	}
}
