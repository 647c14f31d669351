package storage

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// TestThePastOfAReplacedKey is as gone as what was compacted: pages, lists of a revision and watches that go on from there begin anew. What
// cannot be read now stays an error.
func TestThePastOfAReplacedKey(t *testing.T) {
	store, log, ring := newSealedStore(t, box("old"))
	for i := range 4 {
		put(t, store.Table(secrets), marked(fmt.Sprint("a", i)))
	}
	log = forget(t, log)
	store = sealedStore(log, ring)
	page, err := store.Table(secrets).List(t.Context(), ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	before := page.ResourceVersion
	ring.turn(box("new"), box("old"))
	if left, err := store.Reencrypt(t.Context()); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	ring.turn(box("third"))
	if _, err := sealedStore(log, ring).Table(secrets).List(t.Context(), ListOptions{ResourceVersion: before, Match: metav1.ResourceVersionMatchExact}); err == nil || apierrors.IsResourceExpired(err) {
		t.Errorf("without a key: %v", err)
	}
	ring.turn(box("new"))
	table := sealedStore(log, ring).Table(secrets)
	for what, o := range map[string]ListOptions{
		"a page":     {Limit: 1, Continue: page.Continue},
		"all pages":  {Continue: page.Continue},
		"a revision": {ResourceVersion: before, Match: metav1.ResourceVersionMatchExact},
	} {
		_, err := table.List(t.Context(), o)
		status, ok := err.(apierrors.APIStatus)
		if !apierrors.IsResourceExpired(err) || !ok || (status.Status().Continue != "") != (o.Continue != "") {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if o.Continue == "" {
			continue
		}
		if rest, err := table.List(t.Context(), ListOptions{Continue: status.Status().Continue}); err != nil || len(rest.Items) != 3 {
			t.Errorf("%s: the rest of now: %v", what, err)
		}
	}
	some, err := labels.Parse("!other")
	if err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]WatchOptions{
		"from the first":   {ResourceVersion: "2"},
		"of selected ones": {ResourceVersion: before, Selection: Selection{Labels: some}},
	} {
		w, err := table.Watch(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		event := <-w.ResultChan()
		for event.Type == watch.Modified { // of one that is decoded already
			event = <-w.ResultChan()
		}
		if status, ok := event.Object.(*metav1.Status); event.Type != watch.Error || !ok || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("a watch %s: %v", what, event)
		}
		w.Stop()
	}
	w, err := table.Watch(t.Context(), WatchOptions{ResourceVersion: before})
	if err != nil {
		t.Fatal(err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Modified {
		t.Errorf("what it was is of no concern: %v", event)
	}
	w.Stop()
}

// TestHowManyAKeyHasSealed, as objects come, change and go.
func TestHowManyAKeyHasSealed(t *testing.T) {
	store, _, ring := newSealedStore(t, box("old"))
	table := store.Table(secrets)
	old, fresh := string(box("old").Prefix), string(box("new").Prefix)
	check := func(what, prefix string, want int) {
		t.Helper()
		if got := store.SealedWith(prefix); got != want || got != countSealed(store.log.Root(), prefix) {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	check("none", old, 0)
	for i := range 3 {
		put(t, table, marked(fmt.Sprint("a", i)))
		check("one more", old, i+1)
	}
	ring.turn(box("new"), box("old"))
	put(t, table, marked("b"))
	check("of the new one", old, 3)
	if err := table.DeleteUnreadable(t.Context(), "n", "a0", false); err == nil {
		t.Error("it can be read")
	}
	if _, err := table.Write(t.Context(), "n", "a0", func(*View) (*Change, error) { return &Change{Delete: true}, nil }); err != nil {
		t.Fatal(err)
	}
	check("deleted", old, 2)
	if left, err := store.Reencrypt(t.Context()); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	check("written again", old, 0)
	check("the new one", fresh, 3)
	for range changesLimit + 1 {
		put(t, table, marked("b"))
	}
	check("after many changes", fresh, 3)
}
