package join

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestANodeFollowsTheAuthority: what it believes is on disk before it says so, the authority of its own certificate first, and while it was
// told another signer and has no certificate of it, no server takes what it says for sure.
func TestANodeFollowsTheAuthority(t *testing.T) {
	now := time.Now()
	cluster, err := trust.NewCluster(now)
	if err != nil {
		t.Fatal(err)
	}
	own, err := cluster.CA.IssueNode("a", now)
	if err != nil {
		t.Fatal(err)
	}
	node, err := trust.NewNode(own.CertPEM, nil, own.KeyPEM, own.CAPEM, cluster.GossipKeys.Told())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var believed int
	m := &Membership{told: told{wake: make(chan struct{}, 1)}, config: MembershipConfig{
		NodeName: "a", DataDir: dir, Logger: slog.New(slog.DiscardHandler), Believed: func(keyIDs []string) { believed = len(keyIDs) },
	}}
	if err := m.use(node); err != nil {
		t.Fatal(err)
	}
	first := cluster.CA.Pin()
	text, second, err := trust.MakeAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	ring := cluster.CA.Ring()
	if _, err := ring.Add(text); err != nil {
		t.Fatal(err)
	}
	follow := func(want bool) {
		t.Helper()
		m.Follow(cluster.CA.CertPEM())
		if held := m.AuthoritiesHeld(); !slices.Contains(held, changing) {
			t.Errorf("it says that it holds %q before it does", held)
		}
		news := m.told.newest()
		signs, err := m.believe(news)
		if err != nil || signs != want {
			t.Fatalf("signs %t, want %t: %v", signs, want, err)
		}
		if signs {
			m.told.taken(news)
		}
		saved, err := trust.LoadNode(dir)
		if err != nil || !bytes.Equal(saved.Identity.CAPEM, m.held.Identity.CAPEM) || !saved.Valid("a", now) {
			t.Errorf("on disk: %v", err)
		}
	}
	follow(true)
	if held := m.AuthoritiesHeld(); !slices.Equal(held, []string{first, second}) || believed != 2 {
		t.Errorf("it holds %q, believes %d", held, believed)
	}
	if err := ring.Use(second); err != nil {
		t.Fatal(err)
	}
	follow(false)
	if held := m.AuthoritiesHeld(); !slices.Equal(held, []string{first, second, changing}) {
		t.Errorf("it holds %q", held)
	}
	another, err := cluster.CA.IssueNode("a", now)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := trust.NewNode(another.CertPEM, nil, another.KeyPEM, another.CAPEM, cluster.GossipKeys.Told())
	if err != nil {
		t.Fatal(err)
	}
	renewed.GossipKeys = m.held.GossipKeys
	if err := errors.Join(m.use(renewed), m.save()); err != nil {
		t.Fatal(err)
	}
	follow(true)
	if held := m.AuthoritiesHeld(); !slices.Equal(held, []string{second, first}) {
		t.Errorf("it holds %q", held)
	}
	m.told.taken(new([]byte)) // of before
	if err := ring.Drop(first); err != nil {
		t.Fatal(err)
	}
	follow(true)
	if held := m.AuthoritiesHeld(); !slices.Equal(held, []string{second}) || believed != 1 {
		t.Errorf("it holds %q, believes %d", held, believed)
	}
}

// TestAFullDisk: what an agent holds and its disk does not have is sure for no server, and is written when the disk takes it.
func TestAFullDisk(t *testing.T) {
	now := time.Now()
	cluster, err := trust.NewCluster(now)
	if err != nil {
		t.Fatal(err)
	}
	own, err := cluster.CA.IssueNode("a", now)
	if err != nil {
		t.Fatal(err)
	}
	node, err := trust.NewNode(own.CertPEM, own.CertPEM, own.KeyPEM, own.CAPEM, cluster.GossipKeys.Told())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m := &Membership{
		told:   told{wake: make(chan struct{}, 1)},
		config: MembershipConfig{NodeName: "a", DataDir: dir, Logger: slog.New(slog.DiscardHandler)},
	}
	if err := errors.Join(m.use(node), m.save()); err != nil {
		t.Fatal(err)
	}
	text, _, err := trust.MakeAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.CA.Ring().Add(text); err != nil {
		t.Fatal(err)
	}
	folder, away := filepath.Join(dir, "pki"), filepath.Join(dir, "away")
	if err := errors.Join(os.Rename(folder, away), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	m.Follow(cluster.CA.CertPEM())
	for range 3 {
		if err := m.renew(t.Context(), now); err == nil {
			t.Error("it has taken what the disk refuses")
		}
		if held := m.AuthoritiesHeld(); !slices.Contains(held, changing) {
			t.Errorf("it says that it holds %q", held)
		}
	}
	if err := errors.Join(os.Remove(folder), os.Rename(away, folder)); err != nil {
		t.Fatal(err)
	}
	if err := m.renew(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	saved, err := trust.LoadNode(dir)
	if held := m.AuthoritiesHeld(); err != nil || !bytes.Equal(saved.Identity.CAPEM, cluster.CA.CertPEM()) || slices.Contains(held, changing) {
		t.Errorf("it holds %q, on disk: %v", held, err)
	}
}
