package reconciletest

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// TestAWatchTellsWhatWentSinceItsList, and nothing that went before it.
func TestAWatchTellsWhatWentSinceItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t)
		maps := w.Client.CoreV1().ConfigMaps("ns")
		for _, name := range []string{"before", "again", "since", "stays"} {
			Add(w, configMap(name))
		}
		remove := func(name string) {
			if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		remove("before")
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		remove("since")
		remove("again")
		Add(w, configMap("again"))
		events, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		remove("stays")
		var got []string
		for range 3 {
			e := <-events.ResultChan()
			got = append(got, string(e.Type)+" "+e.Object.(*corev1.ConfigMap).Name)
		}
		events.Stop()
		for e := range events.ResultChan() {
			t.Errorf("%v", e)
		}
		if diff := cmp.Diff([]string{"ADDED again", "DELETED since", "DELETED stays"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestChanges are the writes that were accepted and made a difference.
func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		told func(*World) []string
		want []string
	}{
		"writes":  {(*World).Writes, []string{"create", "create", "update", "update", "delete", "delete"}},
		"changes": {(*World).Changes, []string{"create", "update", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := New(t)
				maps := w.Client.CoreV1().ConfigMaps("ns")
				changed := configMap("a")
				changed.Data = map[string]string{"k": "v"}
				for range 2 {
					_, _ = maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}) // the second is refused
				}
				for range 2 {
					if _, err := maps.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
						t.Error(err)
					}
				}
				for range 2 {
					_ = maps.Delete(t.Context(), "a", metav1.DeleteOptions{}) // the second is refused
				}
				var want []string
				for _, verb := range c.want {
					want = append(want, verb+" configmaps ns/a")
				}
				if diff := cmp.Diff(want, c.told(w)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
