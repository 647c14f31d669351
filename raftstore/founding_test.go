package raftstore

import (
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// TestWhatAServerWithoutDataDoes: server a is one of three founders. One that was wiped must
// not vote again under its old id while anybody may have counted its vote.
func TestWhatAServerWithoutDataDoes(t *testing.T) {
	fresh := forward.Status{Phase: string(replica.Fresh), Nonce: "n"}
	held := forward.Status{Phase: string(replica.Held)}
	led := forward.Status{Phase: string(replica.Held), Leader: "c"}
	damaged := forward.Status{Phase: string(replica.Damaged)}
	founded := forward.Status{Phase: string(replica.Held), Founders: map[string]string{"a": "mine", "b": "n"}}
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
		{"this one was counted", replica.Fresh, map[string]forward.Status{"b": founded}, soon, found},
		{"the disk before this one was counted", replica.Fresh, map[string]forward.Status{"b": before}, late, wait},
		{"one with damaged data does not count", replica.Fresh, map[string]forward.Status{"b": damaged}, late, wait},
		{"damaged, all others are new", replica.Damaged, map[string]forward.Status{"b": fresh, "c": fresh}, late, wait},
		{"damaged, and counted once", replica.Damaged, map[string]forward.Status{"b": founded}, late, wait},
		{"damaged, the others have a leader", replica.Damaged, map[string]forward.Status{"b": led, "c": led}, soon, rejoin},
	} {
		cfg := Config{Name: "a", InitialServers: []Server{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
		if got := judge(replica.Beginning{Phase: c.phase, ID: "a", Nonce: "mine"}, cfg, c.answers, c.waited); got.act != c.want {
			t.Errorf("%s: %v, want %v", c.name, got.act, c.want)
		}
	}
}
