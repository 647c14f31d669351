package entrysum

import (
	"testing"

	"github.com/hashicorp/raft"
)

func entry() *raft.Log {
	return &raft.Log{Index: 7, Term: 3, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("more")}
}

// changes are one for each part of an entry.
var changes = map[string]func(*raft.Log){
	"index":            func(l *raft.Log) { l.Index++ },
	"term":             func(l *raft.Log) { l.Term++ },
	"type":             func(l *raft.Log) { l.Type = raft.LogNoop },
	"data":             func(l *raft.Log) { l.Data = []byte("Data") },
	"extensions":       func(l *raft.Log) { l.Extensions = append([]byte("More"), l.Extensions[4:]...) },
	"less data":        func(l *raft.Log) { l.Data = l.Data[:3] },
	"extension missed": func(l *raft.Log) { l.Extensions = l.Extensions[1:] },
}

func TestEachPartCounts(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			sealed, other := Seal(entry()), entry()
			change(sealed)
			change(other)
			if Unseal(sealed) {
				t.Error("the checksum is right")
			}
			if Same(entry(), other) {
				t.Error("they are the same")
			}
		})
	}
}

// TestTheChecksumIsThatOfOtherReleases: logs were written with it, so it is never changed.
func TestTheChecksumIsThatOfOtherReleases(t *testing.T) {
	if got, want := Sum(entry()), uint32(0x2be417d2); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// TestDataAndExtensionsHaveTheirBound: what ends the one does not begin the other.
func TestDataAndExtensionsHaveTheirBound(t *testing.T) {
	moved := entry()
	moved.Data, moved.Extensions = []byte("dat"), []byte("amore")
	if Sum(moved) == Sum(entry()) {
		t.Error("the checksum is the same")
	}
}

func TestSealedAndUnsealed(t *testing.T) {
	for _, extensions := range [][]byte{nil, []byte("more")} {
		l := entry()
		l.Extensions = extensions
		sealed := Seal(l)
		if !Unseal(sealed) || !Same(l, sealed) || (sealed.Extensions == nil) != (extensions == nil) {
			t.Errorf("%+v became %+v", l, sealed)
		}
		if Unseal(l) {
			t.Error("an entry without a checksum is right")
		}
	}
}
