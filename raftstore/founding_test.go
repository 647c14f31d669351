package raftstore

import (
	"io/fs"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// TestWhatAServerWithoutDataDoes: server a is one of three founders. One that was wiped must
// not vote again under its old id while anybody may have counted its vote.
func TestWhatAServerWithoutDataDoes(t *testing.T) {
	fresh := forward.Status{Phase: string(replica.Fresh), Nonce: "n"}
	held := forward.Status{Phase: string(replica.Held)}
	led := forward.Status{Phase: string(replica.Held), Leader: "c"}
	damaged := forward.Status{Phase: string(replica.Damaged)}
	counted := forward.Status{Phase: string(replica.Held), Founders: map[string]string{"a": "mine", "b": "n"}}
	before := forward.Status{Phase: string(replica.Held), Founders: map[string]string{"a": "of an earlier disk", "b": "n"}}
	const soon, late = time.Duration(0), time.Minute
	for _, c := range []struct {
		name    string
		phase   replica.Phase
		answers map[string]forward.Status
		waited  time.Duration
		want    act
	}{
		{"nobody answers", replica.Fresh, nil, late, wait},
		{"all are new", replica.Fresh, map[string]forward.Status{"b": fresh, "c": fresh}, soon, found},
		{"most are new, the third may come", replica.Fresh, map[string]forward.Status{"b": fresh}, soon, wait},
		{"most are new, the third does not come", replica.Fresh, map[string]forward.Status{"b": fresh}, late, found},
		{"one has data and no leader", replica.Fresh, map[string]forward.Status{"b": fresh, "c": held}, late, wait},
		{"the other two have data and no leader", replica.Fresh, map[string]forward.Status{"b": held, "c": held}, late, wait},
		{"one has data and a leader", replica.Fresh, map[string]forward.Status{"b": fresh, "c": led}, soon, rejoin},
		{"this one was counted", replica.Fresh, map[string]forward.Status{"b": counted}, soon, found},
		{"the disk before this one was counted", replica.Fresh, map[string]forward.Status{"b": before}, late, wait},
		{"one with damaged data does not count", replica.Fresh, map[string]forward.Status{"b": damaged}, late, wait},
		{"damaged, all others are new", replica.Damaged, map[string]forward.Status{"b": fresh, "c": fresh}, late, wait},
		{"damaged, and counted once", replica.Damaged, map[string]forward.Status{"b": counted}, late, wait},
		{"damaged, the others have a leader", replica.Damaged, map[string]forward.Status{"b": led, "c": led}, soon, rejoin},
	} {
		cfg := Config{Name: "a", InitialServers: []Server{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
		if got := judge(replica.Beginning{Phase: c.phase, ID: "a", Nonce: "mine"}, cfg, founded.Open(nil), c.answers, c.waited); got.act != c.want {
			t.Errorf("%s: %v, want %v", c.name, got.act, c.want)
		}
	}
}

// recordOf is a Keeper of a record that is never written.
type recordOf string

func (r recordOf) Load() ([]byte, error) {
	if r == "" {
		return nil, fs.ErrNotExist
	}
	return []byte(r), nil
}

func (recordOf) Save([]byte) error { return fs.ErrPermission }

func (recordOf) String() string { return "the record" }

// TestWhatARecordOfTheFoundingAllows: server a is one of three founders, all of which are fresh.
func TestWhatARecordOfTheFoundingAllows(t *testing.T) {
	fresh := func(nonce string) forward.Status { return forward.Status{Phase: string(replica.Fresh), Nonce: nonce} }
	all := map[string]forward.Status{"b": fresh("2"), "c": fresh("3")}
	counted := forward.Status{Founders: map[string]string{"a": "1", "b": "2", "c": "3"}}
	cfg := Config{Name: "a", InitialServers: []Server{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
	for _, c := range []struct {
		name    string
		record  recordOf
		answers map[string]forward.Status
		want    act
		with    int
	}{
		{"there is none", "", all, found, 3},
		{"it cannot be read", "{", all, wait, 0},
		{"other disks were counted", `{"founders":{"a":"before","b":"before"}}`, all, wait, 0},
		{"nobody's disks are known", `{}`, all, wait, 0},
		{"these disks were counted", `{"founders":{"a":"1","b":"2","c":"3"}}`, all, found, 3},
		{"one has another disk now", `{"founders":{"a":"1","b":"2","c":"before"}}`, all, found, 2},
		{"most have other disks now", `{"founders":{"a":"1","b":"before","c":"before"}}`, all, wait, 0},
		{"this one has another disk now", `{"founders":{"a":"before","b":"2","c":"3"}}`, all, wait, 0},
		{"a peer counted this disk, where others had been before", `{"founders":{"a":"before","b":"before"}}`,
			map[string]forward.Status{"b": counted, "c": fresh("3")}, wait, 0},
		{"a peer counted this disk", "", map[string]forward.Status{"b": counted, "c": fresh("3")}, found, 3},
		{"members elsewhere do not count", "", map[string]forward.Status{"d": fresh("4"), "e": fresh("5")}, wait, 0},
	} {
		got := judge(replica.Beginning{Phase: replica.Fresh, ID: "a", Nonce: "1"}, cfg, founded.Open(c.record), c.answers, time.Minute)
		if got.act != c.want || len(got.founders) != c.with {
			t.Errorf("%s: %+v, want %v with %d", c.name, got, c.want, c.with)
		}
	}
}
