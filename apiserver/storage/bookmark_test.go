package storage

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
)

func newTestStore(ringBytes int64) *Store {
	return New(raftstoretest.NewLocal(state.Options{RingBytes: ringBytes}), kinds.NewScheme(), kinds.All())
}

// put stores an object whatever was there and returns its revision.
func put(t *testing.T, table *Table, obj resource.Object) string {
	t.Helper()
	stored, err := table.Write(t.Context(), obj.GetNamespace(), obj.GetName(), func(*View) (*Change, error) {
		return &Change{Object: obj.DeepCopyObject().(resource.Object)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored.GetResourceVersion()
}

func remove(t *testing.T, table *Table, namespace, name string) string {
	t.Helper()
	gone, err := table.Write(t.Context(), namespace, name, func(*View) (*Change, error) { return &Change{Delete: true}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return gone.GetResourceVersion()
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: labels}}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

func startWatch(t *testing.T, ctx context.Context, table *Table, o WatchOptions) watch.Interface {
	t.Helper()
	w, err := table.Watch(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// waiting returns the events that are there, as "TYPE name@version".
func waiting(w watch.Interface) []string {
	synctest.Wait()
	var all []string
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return append(all, "END")
			}
			all = append(all, describe(e))
		default:
			return all
		}
	}
}

func describe(e watch.Event) string {
	if status, ok := e.Object.(*metav1.Status); ok {
		return string(e.Type) + " " + string(status.Reason)
	}
	m := Uncache(e.Object).(resource.Object)
	return string(e.Type) + " " + m.GetName() + "@" + m.GetResourceVersion()
}

func TestNudgedWatchTellsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		w := startWatch(t, t.Context(), store.Table(configMaps), WatchOptions{ResourceVersion: "0", Bookmarks: true, Nudged: true})
		deaf := startWatch(t, t.Context(), store.Table(configMaps), WatchOptions{ResourceVersion: "0", Bookmarks: true})
		put(t, store.Table(secrets), secret("s")) // moves the store on, not this table
		if got := waiting(w); got != nil {
			t.Errorf("events = %v", got)
		}
		revision, err := store.LinearizableRevision(t.Context())
		if err != nil || revision != 1 {
			t.Fatalf("revision = %d, %v", revision, err)
		}
		store.Nudge()
		if got := waiting(w); len(got) != 1 || got[0] != "BOOKMARK @1" {
			t.Errorf("after a nudge: %v", got)
		}
		if got := waiting(deaf); got != nil {
			t.Errorf("a client's watch after a nudge: %v", got)
		}
		put(t, store.Table(configMaps), configMap("a", nil))
		store.Nudge()
		if got := waiting(w); len(got) != 2 || got[0] != "ADDED a@2" || got[1] != "BOOKMARK @2" {
			t.Errorf("after a change and a nudge: %v", got)
		}
	})
}

func TestBookmarksComeEveryMinuteAndBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		table := store.Table(configMaps)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		web, err := labels.Parse("app=web")
		if err != nil {
			t.Fatal(err)
		}
		w := startWatch(t, ctx, table, WatchOptions{Selection: Selection{Labels: web}, ResourceVersion: "0", Bookmarks: true})
		var got []string
		for range 10 { // changes that the selector hides must not put the bookmark off
			time.Sleep(9 * time.Second)
			put(t, table, configMap("other", map[string]string{"at": time.Now().Format("15-04-05")}))
			got = append(got, waiting(w)...)
		}
		if diff := cmp.Diff([]string{"BOOKMARK @6", "BOOKMARK @9", "END"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBookmarkNeverRunsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		table := store.Table(configMaps)
		w := startWatch(t, t.Context(), table, WatchOptions{ResourceVersion: "0", Bookmarks: true, Nudged: true})
		const writes = 3 * watchBuffer // more than fits: the watch waits for its client
		for i := range writes {
			put(t, table, configMap("a", map[string]string{"i": strconv.Itoa(i)}))
			store.Nudge()
		}
		seen := 0
		for seen < writes {
			for _, text := range waiting(w) {
				kind, at, _ := strings.Cut(text, "@")
				revision, _ := strconv.Atoi(at)
				if kind == "BOOKMARK " && revision != seen {
					t.Fatalf("bookmark at %d after event %d", revision, seen)
				} else if kind != "BOOKMARK " && revision != seen+1 {
					t.Fatalf("event %d after event %d", revision, seen)
				}
				seen = revision
			}
		}
	})
}
