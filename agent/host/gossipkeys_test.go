package host

import (
	"bytes"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestAnAgentKeepsItsGossipKeys: what a server tells is held and on disk; another label begins the pool anew; what cannot be kept is not
// held, and told of once; no key is logged.
func TestAnAgentKeepsItsGossipKeys(t *testing.T) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := cluster.CA.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir, first := t.TempDir(), cluster.GossipKeys.Told()
	node, err := trust.NewNode(identity.CertPEM, nil, identity.KeyPEM, identity.CAPEM, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Save(dir); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	relabelled := 0
	k := &ringKeeper{ring: node.GossipKeys, relabelled: func() { relabelled++ }, logger: slog.New(slog.NewTextHandler(&log, nil))}
	next := bytes.Repeat([]byte("k"), 32)
	k.take(session.Ring{Label: first.Label, Keys: [][]byte{next, first.Keys[0]}})
	loaded, err := trust.LoadNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(loaded.GossipKeys.IDs(), k.held().IDs) || len(k.held().IDs) != 2 || k.held().Label != first.Label || relabelled != 0 {
		t.Errorf("it holds %v and keeps %v", k.held(), loaded.GossipKeys.IDs())
	}
	k.take(session.Ring{Label: "another", Keys: [][]byte{next}})
	if relabelled != 1 || k.held().Label != "another" {
		t.Errorf("another label: %v", k.held())
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		k.take(session.Ring{Label: "another", Keys: first.Keys})
	}
	if len(k.held().IDs) != 1 || k.held().IDs[0] == cluster.GossipKeys.IDs()[0] {
		t.Errorf("what cannot be kept is held: %v", k.held())
	}
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 || strings.Contains(text, string(next)) {
		t.Errorf("logged: %s", text)
	}
}
