package logtail

import (
	"testing"

	"github.com/hashicorp/raft"
)

func entry(index uint64) *raft.Log { return &raft.Log{Index: index, Term: 3} }

func TestTail(t *testing.T) {
	var tail Tail
	has := func(index uint64) bool { return tail.Get(index, new(raft.Log)) }
	for i := uint64(5); i < 15; i++ {
		tail.Append([]*raft.Log{entry(i)})
	}
	if has(4) || !has(5) || !has(14) || has(15) {
		t.Error("tail does not hold 5 to 14")
	}
	tail.Delete(1, 7)
	if has(7) || !has(8) {
		t.Error("beginning not forgotten")
	}
	tail.Delete(12, 20)
	if has(12) || !has(11) {
		t.Error("end not forgotten")
	}
	tail.Append([]*raft.Log{entry(30)})
	if has(11) || !has(30) {
		t.Error("a gap did not start the tail anew")
	}
	big := entry(31)
	big.Data = make([]byte, limitBytes+1)
	tail.Append([]*raft.Log{big})
	if has(30) || !has(31) {
		t.Error("bytes are not bounded")
	}
	tail.Delete(31, 31)
	if tail.bytes != 0 {
		t.Errorf("%d bytes counted in an empty tail", tail.bytes)
	}
}
