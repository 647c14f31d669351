package record_test

import (
	"encoding/hex"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/record"
)

func TestFirstMemoWins(t *testing.T) {
	rec := &record.Record{Key: "a"}
	if rec.Memo() != nil {
		t.Fatal("fresh record has a memo")
	}
	winners := make([]any, 16)
	var wg sync.WaitGroup
	for i := range winners {
		wg.Go(func() { winners[i] = rec.SetMemo(i) })
	}
	wg.Wait()
	for _, w := range winners {
		if w != rec.Memo() {
			t.Fatalf("one caller goes on with %v, memo is %v", w, rec.Memo())
		}
	}
}

func TestDigestDependsOnEveryField(t *testing.T) {
	base := record.Record{Key: "k", UID: "u", Value: []byte("v"), CreateRevision: 1, ModRevision: 2}
	seal := func(key, uid, value string, create, mod uint64) record.Digest {
		return (&record.Record{Key: key, UID: uid, Value: []byte(value), CreateRevision: create, ModRevision: mod}).Seal().Digest()
	}
	want := base.Seal().Digest()
	if got := seal("k", "u", "v", 1, 2); got != want {
		t.Error("equal records, different digests")
	}
	others := map[string]record.Digest{
		"key": seal("l", "u", "v", 1, 2), "uid": seal("k", "w", "v", 1, 2), "value": seal("k", "u", "x", 1, 2),
		"create": seal("k", "u", "v", 0, 2), "mod": seal("k", "u", "v", 1, 3),
		"border of key and uid": seal("ku", "", "v", 1, 2), "border of uid and value": seal("k", "", "uv", 1, 2),
	}
	for name, other := range others {
		if other == want {
			t.Errorf("%s does not count", name)
		}
	}
}

// TestTheDigestIsThatOfOtherReleases: replicas compare it, and stop where it differs. It is never changed.
func TestTheDigestIsThatOfOtherReleases(t *testing.T) {
	r := (&record.Record{Key: "k", UID: "u", Value: []byte("v"), CreateRevision: 1, ModRevision: 2}).Seal()
	b := r.Digest().Bytes()
	if got := hex.EncodeToString(b[:]); got != "6f9da43c9bece626c716bd1cf1f8840e" {
		t.Errorf("the digest is %s", got)
	}
	if record.DigestFromBytes(b) != r.Digest() {
		t.Error("it is not read as it was written")
	}
}

func TestARecordOccupiesAllItsParts(t *testing.T) {
	if got := (&record.Record{Key: "key", UID: "uid12", Value: make([]byte, 7)}).Bytes(); got != 15 {
		t.Errorf("%d bytes, want 15", got)
	}
}

func TestDigestArithmetic(t *testing.T) {
	full := record.DigestFromBytes([16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	one := record.DigestFromBytes([16]byte{15: 1})
	if sum := full.Plus(one); sum != (record.Digest{}) {
		t.Errorf("2^128-1 + 1 = %v", sum)
	}
	if diff := (record.Digest{}).Minus(one); diff != full {
		t.Errorf("0 - 1 = %v", diff)
	}
	carry := record.DigestFromBytes([16]byte{8: 255, 9: 255, 10: 255, 11: 255, 12: 255, 13: 255, 14: 255, 15: 255}).Plus(one)
	if want := ([16]byte{7: 1}); carry.Bytes() != want {
		t.Errorf("carry: %v", carry.Bytes())
	}
}
