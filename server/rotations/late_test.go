package rotations

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// rewriting is a ring whose server has objects of the old key.
type rewriting struct {
	KeyRing
	left atomic.Int64
}

func (r *rewriting) Tell(held *rotation.Held) { held.ToRewrite = int(r.left.Load()) }

// alone are the rotations of a server that is the only one.
func alone(w *world, mechanisms map[rotation.Kind]Mechanism) *Rotations {
	config := w.servers["a"].config
	config.Servers = func() []trust.Server { return []trust.Server{{Name: "a"}} }
	config.Mechanisms = mechanisms
	return New(config)
}

// TestNothingCameForTheWholeTime: the old key of what is stored goes after a time in which one leader has seen nothing of it at all.
func TestNothingCameForTheWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, mechanism := newWorld(t), &rewriting{KeyRing: KeyRing{Ring: &keys{ids: []string{"first"}}, Make: newKey}}
		r := alone(w, map[rotation.Kind]Mechanism{rotation.EncryptionKey: mechanism})
		go r.Run(t.Context())
		lead := func() (end func()) {
			ctx, end := context.WithCancel(t.Context())
			go func() { _ = r.Lead(ctx) }()
			return end
		}
		after := func(what string, pass time.Duration, want rotation.Phase) {
			t.Helper()
			time.Sleep(pass)
			synctest.Wait()
			if p, err := r.Carry(t.Context(), Order{Kind: rotation.EncryptionKey, Order: Status}); err != nil || p.Phase != want {
				t.Errorf("%s: %s, %v, want %s", what, p.Line(), err, want)
			}
		}
		end := lead()
		if _, err := r.Carry(t.Context(), Order{Kind: rotation.EncryptionKey, Order: Begin}); err != nil {
			t.Fatal(err)
		}
		after("nothing for a while", 80*time.Second, rotation.Use)
		mechanism.left.Store(1)
		after("something comes", 2*time.Second, rotation.Use)
		mechanism.left.Store(0)
		after("it is gone", 80*time.Second, rotation.Use)
		end()
		time.Sleep(time.Hour)
		end = lead()
		after("another leader", 80*time.Second, rotation.Use)
		after("nothing for the whole time", 20*time.Second, rotation.Done)
		end()
		time.Sleep(time.Minute)
	})
}

// TestWhenAStateIsFollowed: also when there is none, or one that another cluster has written; not while it cannot be read.
func TestWhenAStateIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		theirs, err := trust.NewCA(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		state := rotation.State{Kind: rotation.FrontProxy, Generation: 1, Phase: rotation.Done, From: "first", To: "fresh"}
		text := func(locker rotation.Locker, keys rotation.Keys) string {
			text, err := state.Text(locker, keys)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		ours := trust.Locker{CA: w.ca}
		for name, c := range map[string]struct {
			text string
			want bool
		}{
			"none":              {"", true},
			"another cluster's": {text(trust.Locker{CA: theirs}, nil), true},
			"ours":              {text(ours, rotation.Keys{"fresh": []byte("fresh")}), true},
			"without its key":   {text(ours, nil), false},
			"nonsense":          {"{", false},
		} {
			config := w.servers["a"].config
			config.Mechanisms = map[rotation.Kind]Mechanism{rotation.FrontProxy: KeyRing{Ring: &keys{ids: []string{"first"}}}}
			got := false
			config.Followed = func(kind rotation.Kind) { got = kind == rotation.FrontProxy }
			New(config).take(&corev1.ConfigMap{Data: map[string]string{string(rotation.FrontProxy): c.text}})
			if got != c.want {
				t.Errorf("%s: followed: %v", name, got)
			}
		}
	})
}

// orderly notes which kinds are followed.
type orderly struct {
	KeyRing
	kind rotation.Kind
	mu   *sync.Mutex
	all  *[]rotation.Kind
}

func (o orderly) Follow(rotation.State, rotation.Keys) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	*o.all = append(*o.all, o.kind)
	return nil
}

// TestTheAuthorityIsFollowedFirst: its holders alone can read the other states. These can be read when it was replaced, with their keys.
func TestTheAuthorityIsFollowedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		keyPEM, err := w.ca.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		old, err := trust.ParseCA(w.ca.CertPEM(), keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		data, followed, mu := map[string]string{}, []rotation.Kind{}, sync.Mutex{}
		mechanisms := map[rotation.Kind]Mechanism{}
		for _, kind := range rotation.Built() {
			state := rotation.State{Kind: kind, Generation: 1, Phase: rotation.Done, From: "a", To: "b"}
			if data[string(kind)], err = state.Text(trust.Locker{CA: old}, rotation.Keys{"a": []byte("1"), "b": []byte("2")}); err != nil {
				t.Fatal(err)
			}
			mechanisms[kind] = orderly{KeyRing{}, kind, &mu, &followed}
		}
		r := alone(w, mechanisms)
		r.take(&corev1.ConfigMap{Data: data})
		if len(followed) != len(mechanisms)-1 || followed[0] != rotation.CA {
			t.Errorf("followed: %v", followed)
		}
		text, id, err := trust.MakeAuthority(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ring := w.ca.Ring()
		if _, err := ring.Add(text); err != nil {
			t.Fatal(err)
		}
		if err := ring.Use(id); err != nil {
			t.Fatal(err)
		}
		delete(data, string(rotation.CA))
		r.relock(data)
		if err := ring.Drop(old.Pin()); err != nil {
			t.Fatal(err)
		}
		for kind, text := range maps.All(data) {
			state, keys, err := rotation.Read(trust.Locker{CA: w.ca}, rotation.Kind(kind), text)
			if names := slices.Sorted(maps.Keys(keys)); err != nil || !slices.Equal(names, []string{"a", "b"}) || state.To != "b" {
				t.Errorf("%s: %v, %v", kind, names, err)
			}
			if _, _, err := rotation.Read(trust.Locker{CA: old}, rotation.Kind(kind), text); err == nil {
				t.Errorf("%s: the dropped one reads it", kind)
			}
		}
	})
}
