package storage

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// laggingLog is a replica that has not applied what others have.
type laggingLog struct {
	*raftstoretest.Local
	seen *state.Root
}

func (l *laggingLog) Root() *state.Root { return l.seen }

func newLaggingStore() (*Store, *laggingLog) {
	log := &laggingLog{Local: raftstoretest.NewLocal(state.Options{})}
	log.seen = log.Local.Root()
	store := New(log, kinds.NewScheme(), kinds.All())
	store.caughtUp.Store(true) // it lags since
	return store, log
}

// TestAFreshReplicaCatchesUpFirst: a replica that knows nothing yet does not answer
// "there are no pods", not even those who take old answers.
func TestAFreshReplicaCatchesUpFirst(t *testing.T) {
	for _, what := range []string{"get", "list", "watch"} {
		t.Run(what, func(t *testing.T) {
			store, log := newLaggingStore()
			table := store.Table(configMaps)
			put(t, table, configMap("a", nil))
			store.caughtUp.Store(false)
			switch what {
			case "get":
				if _, err := table.Get(t.Context(), "n", "a", "0"); err != nil {
					t.Error(err)
				}
			case "list":
				page, err := table.List(t.Context(), ListOptions{ResourceVersion: "0"})
				if err != nil || len(page.Items) != 1 {
					t.Errorf("listed %v, %v", page, err)
				}
			case "watch":
				w, err := table.Watch(t.Context(), WatchOptions{ResourceVersion: "0"})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				if e := <-w.ResultChan(); e.Type != watch.Added || Uncache(e.Object).(*corev1.ConfigMap).Name != "a" {
					t.Errorf("first event: %v", e)
				}
			}
			log.seen = log.Local.Root()
			put(t, table, configMap("b", nil))
			if _, err := table.Get(t.Context(), "n", "b", "0"); !apierrors.IsNotFound(err) {
				t.Errorf("later reads are not local: %v", err)
			}
		})
	}
}

// TestRefusalsAreJudgedAgain: nobody is told 404, "nothing to do" or 409 because
// this replica lags.
func TestRefusalsAreJudgedAgain(t *testing.T) {
	store, log := newLaggingStore()
	table := store.Table(configMaps)
	put(t, table, configMap("a", nil))
	if _, err := table.Get(t.Context(), "n", "a", "0"); !apierrors.IsNotFound(err) {
		t.Fatalf("the replica does not lag: %v", err)
	}
	asked := 0
	stored, err := table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) {
		asked++
		if v.Current == nil {
			return nil, table.notFound("a")
		}
		changed := v.Current.Copy()
		changed.SetLabels(map[string]string{"k": "v"})
		return &Change{Object: changed}, nil
	})
	if err != nil || stored.GetLabels()["k"] != "v" || asked != 2 {
		t.Errorf("update: %v after %d decisions", err, asked)
	}
	log.seen = log.Local.Root()
	remove(t, table, "n", "a")
	same, err := table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) {
		if v.Current == nil {
			return nil, table.notFound("a")
		}
		return nil, nil // nothing to do, as far as this replica can see
	})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a no-op on an object that is gone: %v, %v", same, err)
	}
}

// TestRequiredObjectsMustStay: what a decision rests on is checked when it is applied.
func TestRequiredObjectsMustStay(t *testing.T) {
	store, _ := newLaggingStore()
	table := store.Table(configMaps)
	put(t, store.Table(secrets), secret("s"))
	var saw []bool
	_, err := table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) {
		found, err := v.Require(secrets, "n", "s")
		saw = append(saw, found != nil)
		return &Change{Object: configMap("a", nil)}, err
	})
	if err != nil || len(saw) != 2 || saw[0] || !saw[1] {
		t.Errorf("decisions saw %v: %v", saw, err)
	}
}

// TestClaims: a claim has one holder, until it is released with its holder's change.
func TestClaims(t *testing.T) {
	table := newTestStore(0).Table(configMaps)
	errTaken := errors.New("taken")
	claim := ClaimKey("pool", "1")
	write := func(name string, change Change) error {
		_, err := table.Write(t.Context(), "n", name, func(v *View) (*Change, error) {
			if len(change.Claims) > 0 && v.Claimed(claim) != "" {
				return nil, errTaken
			}
			return &change, nil
		})
		return err
	}
	holder := func(name string) *Change {
		cm := configMap(name, nil)
		cm.UID = "uid"
		return &Change{Object: cm, Claims: []string{claim}}
	}
	if err := write("a", *holder("a")); err != nil {
		t.Fatal(err)
	}
	if err := write("b", *holder("b")); !errors.Is(err, errTaken) {
		t.Errorf("second claim: %v", err)
	}
	if err := write("a", Change{Delete: true, Releases: []string{claim}}); err != nil {
		t.Fatal(err)
	}
	if err := write("b", *holder("b")); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

// TestNewestFirst: a replica that lags does not decide on what it has.
func TestNewestFirst(t *testing.T) {
	store, log := newLaggingStore()
	table := store.Table(configMaps)
	put(t, table, configMap("a", nil))
	log.seen = log.Local.Root()
	put(t, table, configMap("b", nil)) // this replica is behind
	for _, c := range []struct {
		name  string
		write func(ctx context.Context, namespace, name string, decide Decide) (resource.Object, error)
		want  bool
	}{{"Write", table.Write, false}, {"WriteNewest", table.WriteNewest, true}} {
		var saw []bool
		_, err := c.write(t.Context(), "n", "a", func(v *View) (*Change, error) {
			other, err := v.Snapshot(configMaps).Get("n", "b")
			saw = append(saw, other != nil)
			return &Change{Object: configMap("a", map[string]string{"by": c.name})}, err
		})
		if err != nil || saw[0] != c.want {
			t.Errorf("%s: %v, decisions saw the other object: %v", c.name, err, saw)
		}
	}
}
