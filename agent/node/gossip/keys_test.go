package gossip

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var nextKey = bytes.Repeat([]byte{9}, keyBytes)

// TestKeysAreReplaced: one member after the other trusts the new key, uses it, and drops the old one, and nobody is taken for dead; one that
// was away meanwhile is heard of again with the new key alone.
func TestKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		all := n.cluster(t, 3)
		away := n.start(t, RoleNode, "away", nil, all[:3]...)
		until(t, 30*time.Second, "a complete pool", complete(append(all, away)))
		n.separate(among(away.ip))
		until(t, time.Minute, "who is away is dead", all[0].sees("away", Dead))
		for _, keys := range [][][]byte{{testKey, nextKey}, {nextKey, testKey}, {nextKey}} {
			for _, m := range all {
				if err := m.UseKeys(keys); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					time.Sleep(time.Second)
					for _, node := range []string{"n1", "n2", "n3"} {
						if m.Name() != node && !all[0].sees(node, Alive)() {
							t.Fatalf("%s is taken for dead while %s takes %d keys", node, m.Name(), len(keys))
						}
					}
				}
			}
		}
		n.separate(func(string, string) bool { return false })
		for range 2 * 60 * 5 {
			time.Sleep(200 * time.Millisecond)
			if all[0].sees("away", Alive)() || all[1].sees("away", Alive)() {
				t.Fatal("the old key is good")
			}
		}
		if err := away.UseKeys([][]byte{nextKey}); err != nil {
			t.Fatal(err)
		}
		until(t, time.Minute, "who was away is back", all[0].sees("away", Alive))
	})
}

// Name is the member's.
func (m *member) Name() string { return m.config.Name }

// TestWhichKeysThereAre: in whatever order, those wanted are there, the first one is used, and bad ones change nothing.
func TestWhichKeysThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		third := bytes.Repeat([]byte{3}, keyBytes)
		m := newNetwork(t).start(t, RoleServer, "s1", nil)
		for _, keys := range [][][]byte{{nextKey, testKey}, {testKey, third}, {third, testKey}, {testKey}, {nextKey}} {
			if err := m.UseKeys(keys); err != nil {
				t.Fatal(err)
			}
			if got := m.keys.GetKeys(); !bytes.Equal(bytes.Join(got, nil), bytes.Join(keys, nil)) {
				t.Errorf("it has %v, want %v", got, keys)
			}
		}
		for _, bad := range [][][]byte{nil, {testKey, testKey[:1]}} {
			if err := m.UseKeys(bad); !errors.Is(err, ErrNoKey) || len(m.keys.GetKeys()) != 1 {
				t.Errorf("%v: %v", bad, err)
			}
		}
		if err := (*Pool)(nil).UseKeys(nil); err != nil {
			t.Errorf("without a pool: %v", err)
		}
	})
}
