package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	k := newRingKeeper(node.GossipKeys, func(trust.GossipKeys) member { return nil }, slog.New(slog.NewTextHandler(&log, nil)))
	next := bytes.Repeat([]byte("k"), 32)
	k.take(session.Ring{Label: first.Label, Keys: [][]byte{next, first.Keys[0]}})
	loaded, err := trust.LoadNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(loaded.GossipKeys.IDs(), k.held().IDs) || len(k.held().IDs) != 2 || k.held().Label != first.Label || len(k.relabelled) != 0 {
		t.Errorf("it holds %v and keeps %v", k.held(), loaded.GossipKeys.IDs())
	}
	k.take(session.Ring{Label: "another", Keys: [][]byte{next}})
	if len(k.relabelled) != 1 || k.held().Label != "another" {
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

// fakeMember is one that joins nothing.
type fakeMember struct {
	keys    trust.GossipKeys
	running bool
	left    bool
	used    int
	err     error // of UseKeys
}

func (m *fakeMember) Run(ctx context.Context) error {
	m.running = true
	<-ctx.Done()
	return nil
}

func (m *fakeMember) Leave(timeout time.Duration) error {
	time.Sleep(timeout)
	m.left = true
	return nil
}

func (m *fakeMember) Rejoin()         {}
func (m *fakeMember) Address() string { return "192.0.2.1:7946" }

func (m *fakeMember) UseKeys([][]byte) error {
	m.used++
	return m.err
}

// TestAnotherLabelIsAnotherPool: the member leaves the old one, which never gets the keys of the other, and joins that with the newest;
// whoever is told of where it gossips is told again. Keys that the pool could not use are not reported, so the server tells them again.
func TestAnotherLabelIsAnotherPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := bytes.Repeat([]byte("1"), 32), bytes.Repeat([]byte("2"), 32)
		ring, err := trust.NewGossipRing(one)
		if err != nil {
			t.Fatal(err)
		}
		var members []*fakeMember
		k := newRingKeeper(ring, func(keys trust.GossipKeys) member {
			members = append(members, &fakeMember{keys: keys})
			return members[len(members)-1]
		}, slog.New(slog.DiscardHandler))
		joined := 0
		k.joined = func() { joined++ }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- k.run(ctx) }()
		synctest.Wait()
		first := k.held()
		members[0].err = errors.New("it cannot")
		for range 2 {
			k.take(session.Ring{Label: first.Label, Keys: [][]byte{two, one}})
		}
		if !slices.Equal(k.held().IDs, first.IDs) || members[0].used != 2 {
			t.Errorf("it says that it holds %v, and tried %d times", k.held().IDs, members[0].used)
		}
		for _, keys := range [][][]byte{{two, one}, {two}} {
			k.take(session.Ring{Label: "another", Keys: keys})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(members) != 2 || !members[0].left || members[0].used != 2 || joined != 1 || !members[1].running || members[1].left {
			t.Fatalf("%d members, told %d times: %+v", len(members), joined, members)
		}
		if want := (trust.GossipKeys{Label: "another", Keys: [][]byte{two}}); !cmp.Equal(want, members[1].keys) || k.held().Label != "another" {
			t.Errorf("it has joined with %v, and says %v", members[1].keys, k.held())
		}
		stop()
		if err := <-ended; err != nil || !members[1].left {
			t.Errorf("the goodbye: %v", err)
		}
	})
}
