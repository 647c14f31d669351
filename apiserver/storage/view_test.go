package storage

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestARefusalOfWhatIsCurrentStands: deciding may ask webhooks, so what this replica
// knew was right is not decided twice.
func TestARefusalOfWhatIsCurrentStands(t *testing.T) {
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	refused := errors.New("no")
	for name, c := range map[string]struct {
		behind string // what this replica has missed
		read   func(v *View) error
		want   int
	}{
		"nothing was missed": {"", func(*View) error { return nil }, 1},
		"something else":     {"b", func(*View) error { return nil }, 1},
		"the object":         {"a", func(*View) error { return nil }, 2},
		"what it required": {"b", func(v *View) error {
			_, err := v.Require(configMaps, "n", "b")
			return err
		}, 2},
		"what it required is as it was": {"c", func(v *View) error {
			_, err := v.Require(configMaps, "n", "b")
			return err
		}, 1},
		"a claim":      {"b", func(v *View) error { v.Claimed("x"); return nil }, 2},
		"other tables": {"b", func(v *View) error { v.Snapshot(namespaces); return nil }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			store, log := newLaggingStore()
			table := store.Table(configMaps)
			put(t, table, configMap("a", nil))
			log.seen = log.Local.Root()
			if c.behind != "" {
				put(t, table, configMap(c.behind, map[string]string{"k": "2"}))
			}
			decided := 0
			_, err := table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) {
				decided++
				return nil, errors.Join(c.read(v), refused)
			})
			if !errors.Is(err, refused) || decided != c.want {
				t.Errorf("decided %d times, %v; want %d", decided, err, c.want)
			}
		})
	}
}

// TestReplacedObjectsAreOneTransaction: both are written or none, and neither over
// what the view has not seen.
func TestReplacedObjectsAreOneTransaction(t *testing.T) {
	store, log := newLaggingStore()
	table := store.Table(configMaps)
	put(t, table, configMap("other", map[string]string{"n": "1"}))
	log.seen = log.Local.Root()
	put(t, table, configMap("other", map[string]string{"n": "2"})) // this replica is behind
	var seen []string
	_, err := table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) {
		obj, err := v.Snapshot(configMaps).Get("n", "other")
		if err != nil {
			return nil, err
		}
		other := obj.DeepCopyObject().(*corev1.ConfigMap)
		seen = append(seen, other.Labels["n"])
		other.Labels["by"] = "a"
		return &Change{Object: configMap("a", nil)}, v.Replace(configMaps, other)
	})
	if err != nil || len(seen) != 2 || seen[1] != "2" {
		t.Fatalf("%v, saw %v", err, seen)
	}
	snapshot, err := table.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := snapshot.Get("n", "other")
	if err != nil || other.(*corev1.ConfigMap).Labels["by"] != "a" || other.(*corev1.ConfigMap).Labels["n"] != "2" {
		t.Errorf("%v, other = %v", err, other)
	}
	_, err = table.Write(t.Context(), "n", "b", func(v *View) (*Change, error) {
		return &Change{Object: configMap("b", nil)}, v.Replace(configMaps, configMap("none", nil))
	})
	if !apierrors.IsNotFound(err) {
		t.Errorf("replacing what is not there: %v", err)
	}
}
