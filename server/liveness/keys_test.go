package liveness

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestWhoLacksKeys: those who say something else than this server holds, each once, and those who cannot follow first; who was shut out is
// waited for by nobody.
func TestWhoLacksKeys(t *testing.T) {
	want := session.RingHeld{Label: "l", IDs: []string{"b", "a"}}
	reports := []session.Reported{
		{Node: "good", Held: want},
		{Node: "order", Held: session.RingHeld{Label: "l", IDs: []string{"a", "b"}}},
		{Node: "label", Held: session.RingHeld{Label: "k", IDs: want.IDs}},
		{Node: "label", Held: session.RingHeld{Label: "k", IDs: want.IDs}},
		{Node: "twice", Held: want}, {Node: "twice", Held: session.RingHeld{Label: "l", IDs: []string{"a"}}},
		{Node: "old"}, {Node: "revoked"}, {Node: "odd", Garbled: true},
	}
	revoked := func(node string) bool { return node == "revoked" }
	got := lackingOf(reports, want, revoked)
	if diff := cmp.Diff([]rotation.Lacking{{Node: "old", TooOld: true}, {Node: "odd", Garbled: true}, {Node: "label"}, {Node: "order"}, {Node: "twice"}}, got); diff != "" {
		t.Error(diff)
	}
	for i := range 100 {
		reports = append(reports, session.Reported{Node: fmt.Sprintf("n%03d", i), Held: session.RingHeld{IDs: []string{"a"}}})
	}
	got = lackingOf(reports, want, revoked)
	if len(got) != rotation.LackingMax+1 || !got[0].TooOld || got[rotation.LackingMax].More != 89 || got[rotation.LackingMax].TooOld {
		t.Errorf("%d are named: %+v", len(got), got)
	}
	for i := range rotation.LackingMax {
		reports = append(reports, session.Reported{Node: fmt.Sprintf("old%03d", i)})
	}
	if got = lackingOf(reports, want, revoked); !got[rotation.LackingMax].TooOld {
		t.Errorf("one that is too old is among the others: %+v", got)
	}
}

// TestWhoIsToldOfKeys: nobody while this server may hold those of long ago, and never who was shut out.
func TestWhoIsToldOfKeys(t *testing.T) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	judge, follows := &revocation.Judge{}, false
	judge.Use(revocation.NewList([]revocation.Entry{{Target: revocation.Target{Kind: revocation.Node, Name: "stolen"}}}))
	config := Config{Keys: cluster.GossipKeys, Revoked: judge, Follows: func() bool { return follows }}
	l := &Liveness{config: config, table: session.NewTable("s1", nil)}
	if ring, _ := l.ring("n1"); ring != nil {
		t.Error("keys of long ago are told")
	}
	follows = true
	if ring, _ := l.ring("stolen"); ring != nil {
		t.Error("who was shut out is told")
	}
	if l.IsAway("stolen") || !l.IsAway("n1") {
		t.Error("who was shut out gets keys when he comes back, says the status")
	}
	ring, held := l.ring("n1")
	if ring == nil || len(ring.Keys) != 1 || ring.Label == "" || !cmp.Equal(held.IDs, cluster.GossipKeys.IDs()) {
		t.Errorf("n1 is told %v", held)
	}
	if err := l.UseKeys(); err != nil {
		t.Errorf("without a pool: %v", err)
	}
}
