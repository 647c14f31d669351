package storage

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReadsOfALaggingReplica: what others acknowledged is seen by default, and by
// who asks for it by its revision; only resourceVersion=0 takes what is here.
func TestReadsOfALaggingReplica(t *testing.T) {
	store, _ := newLaggingStore()
	table := store.Table(configMaps)
	revision := put(t, table, configMap("a", nil))
	for resourceVersion, want := range map[string]bool{"": true, revision: true, "0": false} {
		_, err := table.Get(t.Context(), "n", "a", resourceVersion)
		if found := err == nil; found != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("get at %q: %v, want found %t", resourceVersion, err, want)
		}
		page, err := table.List(t.Context(), ListOptions{ResourceVersion: resourceVersion})
		if err != nil || len(page.Items) == 1 != want {
			t.Errorf("list at %q: %v, %v, want found %t", resourceVersion, page, err, want)
		}
	}
}

// TestLostUpdatesOfALaggingReplica: each of several read-modify-writes that begin
// with the same old object counts.
func TestLostUpdatesOfALaggingReplica(t *testing.T) {
	store, log := newLaggingStore()
	table := store.Table(configMaps)
	put(t, table, configMap("a", map[string]string{"n": "0"}))
	log.seen = log.Local.Root()
	const writes = 3
	var last string
	for range writes {
		stored, err := table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) {
			changed := v.Current.Copy()
			n, err := strconv.Atoi(changed.GetLabels()["n"])
			changed.SetLabels(map[string]string{"n": strconv.Itoa(n + 1)})
			return &Change{Object: changed}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		last = stored.GetLabels()["n"]
	}
	if last != strconv.Itoa(writes) {
		t.Errorf("%s after %d increments", last, writes)
	}
}

// TestClaimsOfALaggingReplica: a claim that this replica has not seen yet is taken
// all the same.
func TestClaimsOfALaggingReplica(t *testing.T) {
	store, _ := newLaggingStore()
	table := store.Table(configMaps)
	errTaken := errors.New("taken")
	claim := func(name string) error {
		_, err := table.Write(t.Context(), "n", name, func(v *View) (*Change, error) {
			if v.Claimed(ClaimKey("pool", "1")) != "" {
				return nil, errTaken
			}
			obj := configMap(name, nil)
			obj.UID = "same-in-both" // as far as preconditions by uid can tell
			return &Change{Object: obj, Claims: []string{ClaimKey("pool", "1")}}, nil
		})
		return err
	}
	if err := claim("a"); err != nil {
		t.Fatal(err)
	}
	if err := claim("b"); !errors.Is(err, errTaken) {
		t.Errorf("the second claim: %v", err)
	}
}

// TestPagesAreOneCut: what changes between two pages shows in neither.
func TestPagesAreOneCut(t *testing.T) {
	table := newTestStore(0).Table(configMaps)
	var before string
	for _, name := range []string{"a", "b", "d"} {
		before = put(t, table, configMap(name, nil))
	}
	first, err := table.List(t.Context(), ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	put(t, table, configMap("c", nil))
	remove(t, table, "n", "d")
	rest, err := table.List(t.Context(), ListOptions{Limit: 10, Continue: first.Continue})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "d"}, append(names(first), names(rest)...)); diff != "" {
		t.Errorf("pages: %s", diff)
	}
	exact, err := table.List(t.Context(), ListOptions{ResourceVersion: before, Match: metav1.ResourceVersionMatchExact})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "d"}, names(exact)); diff != "" || exact.ResourceVersion != before {
		t.Errorf("exactly at %s, got %s: %s", before, exact.ResourceVersion, diff)
	}
}

func names(page *Page) []string {
	var all []string
	for _, item := range page.Items {
		all = append(all, item.Object().GetName())
	}
	return all
}

// TestInitialEventsEndAtTheirRevision: what is committed behind the initial events
// comes as an event, so the bookmark between must not name it.
func TestInitialEventsEndAtTheirRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTestStore(0).Table(configMaps)
		put(t, table, configMap("a", nil))
		initial := true
		w := startWatch(t, t.Context(), table, WatchOptions{SendInitialEvents: &initial, Bookmarks: true})
		got := waiting(w)
		put(t, table, configMap("b", nil))
		got = append(got, waiting(w)...)
		if diff := cmp.Diff([]string{"ADDED a@1", "BOOKMARK @1", "ADDED b@2"}, got); diff != "" {
			t.Error(diff)
		}
	})
}
