package trust

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// plainKey is what releases without a ring read of a folder.
func plainKey(t *testing.T, folder string) []byte {
	t.Helper()
	return must[[]byte](t)(ParseGossipKey(string(must[[]byte](t)(os.ReadFile(filepath.Join(folder, fileGossipKey))))))
}

// TestGossipKeysAreReplaced: after each step the folder has what is held, the label stays, and an earlier release finds the key in use.
func TestGossipKeysAreReplaced(t *testing.T) {
	dir := t.TempDir()
	cluster := must[*Cluster](t)(InitCluster(dir, nil, time.Now()))
	ring, folder := cluster.GossipKeys, filepath.Join(dir, folderPKI)
	former := ring.Told()
	if _, err := os.Stat(filepath.Join(folder, fileGossipRing)); err == nil {
		t.Error("there is a ring before there is anything to say")
	}
	text, id, err := MakeGossipKey()
	if err != nil {
		t.Fatal(err)
	}
	fresh := must[[]byte](t)(ParseGossipKey(string(text)))
	for _, step := range []struct {
		name string
		take func() error
		want [][]byte
	}{
		{"add", func() error { _, err := ring.Add(text); return err }, [][]byte{former.Keys[0], fresh}},
		{"use", func() error { return ring.Use(id) }, [][]byte{fresh, former.Keys[0]}},
		{"drop", func() error { return ring.Drop(former.IDs()[0]) }, [][]byte{fresh}},
	} {
		if err := step.take(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		want := GossipKeys{Label: former.Label, Keys: step.want}
		if diff := cmp.Diff(want, ring.Told()); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if diff := cmp.Diff(want, must[*Cluster](t)(LoadCluster(dir)).GossipKeys.Told()); diff != "" {
			t.Errorf("%s, read again: %s", step.name, diff)
		}
		if !bytes.Equal(plainKey(t, folder), step.want[0]) {
			t.Errorf("%s: an earlier release uses another key", step.name)
		}
		info, err := os.Stat(filepath.Join(folder, fileGossipRing))
		if err != nil || info.Mode().Perm() != secretfile.Secret {
			t.Errorf("%s: %v, %v", step.name, info, err)
		}
	}
	if _, err := cluster.Shared(); !errors.Is(err, ErrNotShared) { // it is not founded
		t.Errorf("shared: %v", err)
	}
}

// TestWhoAsksForGossipKeysWaitsForNoDisk: sessions are answered while a change is being written.
func TestWhoAsksForGossipKeysWaitsForNoDisk(t *testing.T) {
	ring := newGossipRing(FirstGossipKey(bytes.Repeat([]byte{1}, gossipKeyBytes)), "")
	ring.mu.Lock() // as a change has it while it writes
	defer ring.mu.Unlock()
	told := make(chan GossipKeys, 1)
	go func() { told <- ring.Told() }()
	select {
	case got := <-told:
		if len(got.Keys) != 1 || got.Label == "" {
			t.Errorf("told: %v", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the change")
	}
}

// TestBothFilesHaveTheKeyInUse also after a crash, or a full disk, between the two.
func TestBothFilesHaveTheKeyInUse(t *testing.T) {
	one, two := bytes.Repeat([]byte{1}, gossipKeyBytes), bytes.Repeat([]byte{2}, gossipKeyBytes)
	both := GossipKeys{Label: FirstGossipKey(one).Label, Keys: [][]byte{two, one}}
	for name, mend := range map[string]func(*GossipRing) error{
		"at a start":        (*GossipRing).Settle,
		"told again":        func(g *GossipRing) error { return g.Follow(both) },
		"used once more":    func(g *GossipRing) error { return g.Use(gossipKeyOf(two).id) },
		"dropped something": func(g *GossipRing) error { return g.Drop(gossipKeyOf(one).id) },
	} {
		dir := t.TempDir()
		if err := newGossipRing(both, "").saveIn(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fileGossipKey), plainGossipKey(gossipKeyOf(one)), secretfile.Secret); err != nil {
			t.Fatal(err)
		}
		if err := mend(must[*GossipRing](t)(loadGossipRing(dir))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(plainKey(t, dir), two) {
			t.Errorf("%s: gossip.key is not the key in use", name)
		}
	}
}

// TestANodeFollows: what a server tells is held and kept, and nothing that cannot be.
func TestANodeFollows(t *testing.T) {
	dir, one, two := t.TempDir(), bytes.Repeat([]byte{1}, gossipKeyBytes), bytes.Repeat([]byte{2}, gossipKeyBytes)
	ring := newGossipRing(FirstGossipKey(one), "")
	if err := ring.saveIn(dir); err != nil {
		t.Fatal(err)
	}
	told := GossipKeys{Label: FirstGossipKey(one).Label, Keys: [][]byte{two, one}}
	for range 2 {
		if err := ring.Follow(told); err != nil {
			t.Fatal(err)
		}
	}
	if got := must[*GossipRing](t)(loadGossipRing(dir)).Told(); !cmp.Equal(got, told) || !cmp.Equal(ring.Told(), told) {
		t.Errorf("it holds %v and keeps %v", ring.Told().IDs(), got.IDs())
	}
	other := GossipKeys{Label: "another", Keys: told.Keys}
	if err := ring.Follow(other); err != nil || !cmp.Equal(must[*GossipRing](t)(loadGossipRing(dir)).Told(), other) {
		t.Errorf("another label: %v", err)
	}
	for name, bad := range map[string]GossipKeys{
		"no key":    {Label: "x"},
		"no label":  {Keys: told.Keys},
		"too long":  {Label: strings.Repeat("x", gossipLabelLettersMax+1), Keys: told.Keys},
		"too many":  {Label: "x", Keys: slices.Repeat(told.Keys, ringKeysMax)},
		"twice":     {Label: "x", Keys: [][]byte{one, one}},
		"too short": {Label: "x", Keys: [][]byte{one[1:]}},
	} {
		if err := ring.Follow(bad); err == nil || !cmp.Equal(ring.Told(), other) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := ring.Follow(told); err == nil || !cmp.Equal(ring.Told(), other) {
		t.Errorf("what cannot be kept is held: %v", err)
	}
}

// TestGossipKeysAreSecret: neither is a key printed, nor is a text that cannot be read.
func TestGossipKeysAreSecret(t *testing.T) {
	cluster := must[*Cluster](t)(NewCluster(time.Now()))
	key := cluster.GossipKeys.Used()
	told := cluster.GossipKeys.Told()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("told", "keys", told)
	printed := fmt.Sprintf("%v %+v %s %v %+v %#v %s", key, *cluster.GossipKeys.Now(), key, told, &told, told, log.String())
	if strings.Contains(printed, fmt.Sprintf("%#x, %#x", key.secret[0], key.secret[1])) || !strings.Contains(log.String(), key.id) {
		t.Errorf("printed: %s", printed)
	}
	if strings.Contains(printed, fmt.Sprint(key.secret[0], key.secret[1])) {
		t.Errorf("printed: %s", printed)
	}
	if _, err := parseGossipKeys([]byte(`{"label":"x","keys":["secret"]}`)); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a text that is none: %v", err)
	}
	if _, err := cluster.GossipKeys.Add([]byte(`{"label":"x","keys":[]}`)); err == nil {
		t.Error("an empty ring is added")
	}
	copied := cluster.Copied().GossipKeys
	if err := copied.Follow(GossipKeys{Label: "x", Keys: [][]byte{bytes.Repeat([]byte{9}, gossipKeyBytes)}}); err != nil || cluster.GossipKeys.Used().ID() != key.ID() {
		t.Errorf("a copy shares its keys: %v", err)
	}
}
