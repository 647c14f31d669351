package storage

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// owned is what the garbage collector must see of any object.
func owned() metav1.ObjectMeta {
	gone := metav1.NewTime(time.Unix(7, 0))
	return metav1.ObjectMeta{
		Namespace: "n", Name: "a", UID: "u", ResourceVersion: "5", CreationTimestamp: gone, DeletionTimestamp: &gone,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "o", UID: "p", BlockOwnerDeletion: new(true)}},
		Finalizers:      []string{metav1.FinalizerDeleteDependents},
	}
}

// full is owned with what a view of the metadata leaves out.
func full(obj resource.Object) resource.Object {
	m := owned()
	m.Labels, m.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
	obj.SetLabels(m.Labels)
	obj.SetAnnotations(m.Annotations)
	obj.SetNamespace(m.Namespace)
	obj.SetName(m.Name)
	obj.SetUID(m.UID)
	obj.SetCreationTimestamp(m.CreationTimestamp)
	obj.SetDeletionTimestamp(m.DeletionTimestamp)
	obj.SetOwnerReferences(m.OwnerReferences)
	obj.SetFinalizers(m.Finalizers)
	return obj
}

// TestMetadataOfEveryKind reads it off the bytes, and again off the decoded object.
func TestMetadataOfEveryKind(t *testing.T) {
	store := newTestStore(0)
	check := func(t *testing.T, kind *resource.Any, obj resource.Object) {
		value, err := store.codec.encode(kind, obj)
		if err != nil {
			t.Fatal(err)
		}
		r := &record.Record{Key: "/g/r/n/a", Value: value, ModRevision: 5}
		for _, source := range []string{"bytes", "object"} {
			got, err := store.codec.decodeMetadata(kind, r)
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			if diff := cmp.Diff(&metav1.PartialObjectMetadata{ObjectMeta: owned()}, got.object); diff != "" {
				t.Errorf("%s: %s", source, diff)
			}
			if source == "bytes" && r.Memo() != nil {
				t.Error("the object was decoded")
			}
			if _, err := store.codec.decode(kind, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, kind := range kinds.All() {
		if kind.ToStored == nil {
			t.Run(kind.GroupVersionKind.String(), func(t *testing.T) { check(t, kind, full(kind.New())) })
		}
	}
	t.Run("custom", func(t *testing.T) {
		custom := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "e/v1", "kind": "K", "Metadata": map[string]any{"name": "not this"},
		}}
		check(t, &resource.Any{}, full(custom))
	})
}

// TestMetadataOfWhatNobodyCanDecode is what the record says, so that one broken object does not hide all others of its kind.
func TestMetadataOfWhatNobodyCanDecode(t *testing.T) {
	log := raftstoretest.NewLocal(state.Options{})
	store := New(log, kinds.NewScheme(), kinds.All())
	table := store.Table(configMaps)
	put(t, table, configMap("z", nil))
	for name, value := range map[string]string{"a": "\x01k8s\x00\xff\xff", "b": "\xffnothing", "c": "\x01k8s\x00", "d": "\x02{}", "e": ""} {
		_, err := log.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.Put, Key: "/core/configmaps/n/" + name, UID: "u-" + name, Value: []byte(value)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.List(t.Context(), ListOptions{}); err == nil || !strings.Contains(err.Error(), "/core/configmaps/n/a") {
		t.Errorf("a list of whole objects says %v", err)
	}
	page, err := table.Metadata().List(t.Context(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range page.Items {
		o := item.Object()
		got = append(got, o.GetNamespace()+"/"+o.GetName()+" "+strings.TrimRight(string(o.GetUID()), "0123456789"))
	}
	if diff := cmp.Diff([]string{"n/a u-a", "n/b u-b", "n/c u-c", "n/d u-d", "n/e u-e", "n/z "}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWatchOfMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		table := store.Table(configMaps)
		put(t, table, configMap("a", map[string]string{"l": "1"}))
		view := table.Metadata()
		w := startWatch(t, t.Context(), view, WatchOptions{ResourceVersion: "0", Bookmarks: true, SendInitialEvents: new(true), Plain: true})
		put(t, table, configMap("a", map[string]string{"l": "2"}))
		remove(t, table, "n", "a")
		synctest.Wait()
		var got []string
		for len(w.ResultChan()) > 0 {
			e := <-w.ResultChan()
			if _, ok := e.Object.(*metav1.PartialObjectMetadata); !ok {
				t.Errorf("%s of %T", e.Type, e.Object)
			}
			got = append(got, describe(e))
		}
		if diff := cmp.Diff([]string{"ADDED a@1", "BOOKMARK @1", "MODIFIED a@2", "DELETED a@3"}, got); diff != "" {
			t.Error(diff)
		}
		put(t, table, configMap("b", nil))
		page, err := view.List(t.Context(), ListOptions{ResourceVersion: "0"})
		if err != nil || len(page.Items) != 1 || page.Items[0].object.GetName() != "b" {
			t.Errorf("listed %v, %v", page, err)
		}
	})
}

// TestBookmarksOfMetadata: whatever a kind puts into bookmarks, those of its metadata have none of it.
func TestBookmarksOfMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		for _, kind := range kinds.All() {
			view := &Table{store: store, kind: kind}
			w := startWatch(t, t.Context(), view.Metadata(), WatchOptions{ResourceVersion: "0", Bookmarks: true, SendInitialEvents: new(true), Plain: true})
			if e := <-w.ResultChan(); e.Type != watch.Bookmark {
				t.Errorf("%s: %v", kind.GroupVersionKind, e)
			}
		}
	})
}

// TestOneNameDecodesNoOther: whoever follows one object in a large table does not
// pay for the others.
func TestOneNameDecodesNoOther(t *testing.T) {
	table := newTestStore(0).Table(configMaps)
	one := Selection{Fields: fields.OneTermEqualSelector("metadata.name", "a")}
	for _, name := range []string{"b", "ba"} {
		if picked, err := table.pick(one, &record.Record{Key: table.key("n", name), Value: []byte("damaged")}); picked != nil || err != nil {
			t.Errorf("%s: %v, %v", name, picked, err)
		}
	}
	if _, err := table.pick(one, &record.Record{Key: table.key("n", "a"), Value: []byte("damaged")}); err == nil {
		t.Error("its own name was not decoded")
	}
}
