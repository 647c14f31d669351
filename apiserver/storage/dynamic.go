package storage

import (
	"context"
	"fmt"
	"iter"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// convertBatch is how many objects of a dynamic kind are converted at once: one call of a conversion webhook.
const convertBatch = 500

// Dynamic is one version of a kind that comes and goes while the server runs. Its objects have no Go type (*unstructured.Unstructured)
// and are kept as JSON, under the version in which they were written.
type Dynamic struct {
	Kind *resource.Any
	// StorageVersion is the apiVersion under which Store keeps objects.
	StorageVersion string
	// Serve turns objects as they are kept, under any version, into the version of Kind; the results stand in their order. It must not
	// change what it is handed, and may hand it back. It is called for many at once, and may call a webhook.
	Serve func(kept []*unstructured.Unstructured) ([]*unstructured.Unstructured, error)
	// Volatile: what Serve makes of another version may be different the next time, since a webhook is asked.
	Volatile bool
	// Store turns an object of Kind's version into what is kept. It must not change it.
	Store func(served *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Complete adds to a new object what Serve would, since it is answered without being read: of all that a write left out, that is
	// the default of a status. It may be nil.
	Complete func(created *unstructured.Unstructured)
	// Until ends the watches of this table: the next will see another schema.
	Until context.Context
}

// NewTable returns a table of a dynamic kind. It costs nothing until it is read; tables of all versions of a kind show the same objects.
func (s *Store) NewTable(d Dynamic) *Table {
	return &Table{store: s, kind: d.Kind, stored: d.Kind, prefix: resourcePrefix(d.Kind.GroupResource()), dynamic: &d}
}

// created is a new object as a read would show it.
func (t *Table) created(v *View, obj resource.Object) resource.Object {
	if v.Current == nil && t.dynamic != nil && t.dynamic.Complete != nil {
		t.dynamic.Complete(obj.(*unstructured.Unstructured))
	}
	return obj
}

// view is what one table makes of a kept object.
type view struct {
	table  *Table
	cached *Cached
}

// viewIn returns the object as the table serves it, if that is known already. Each
// version has one view at most, so an old table's goes when a new one's comes.
func (c *Cached) viewIn(t *Table) *Cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.views[t.kind.GroupVersionKind.Version]; v.table == t {
		return v.cached
	}
	return nil
}

func (c *Cached) setView(t *Table, served *Cached) *Cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	version := t.kind.GroupVersionKind.Version
	if v := c.views[version]; v.table == t && apiequality.Semantic.DeepEqual(v.cached.object, served.object) {
		return v.cached // with its encodings
	}
	if c.views == nil {
		c.views = make(map[string]view, 1)
	}
	c.views[version] = view{t, served}
	return served
}

// view returns a kept object as the table serves it.
func (t *Table) view(kept *Cached) (*Cached, error) {
	if served := kept.viewIn(t); served != nil {
		return served, nil
	}
	views, err := t.convert([]*Cached{kept})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// decodeAnew is decode for a client that wants the newest state: what a webhook converts is converted again, since the
// webhook may have changed while the object did not.
func (t *Table) decodeAnew(r *record.Record) (*Cached, error) {
	if t.metadataOnly || t.dynamic == nil || !t.dynamic.Volatile {
		return t.decode(r)
	}
	kept, err := t.store.codec.decode(t.stored, r)
	if err != nil {
		return nil, err
	}
	if kept.object.(*unstructured.Unstructured).GetAPIVersion() == t.kind.GroupVersionKind.GroupVersion().String() {
		return t.view(kept)
	}
	views, err := t.convert([]*Cached{kept})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// convert makes the views of kept objects.
func (t *Table) convert(kept []*Cached) ([]*Cached, error) {
	objects := make([]*unstructured.Unstructured, len(kept))
	for i, c := range kept {
		objects[i] = c.object.(*unstructured.Unstructured)
	}
	served, err := t.dynamic.Serve(objects)
	if err != nil {
		return nil, err
	}
	if len(served) != len(objects) {
		return nil, fmt.Errorf("storage: %d of %d objects were converted", len(served), len(objects))
	}
	views := make([]*Cached, len(kept))
	for i, c := range kept {
		object := served[i]
		if apiequality.Semantic.DeepEqual(object, objects[i]) {
			object = objects[i] // one copy will do
		}
		fresh := &Cached{object: object}
		views[i] = c.setView(t, fresh)
		t.store.codec.shared.remember(views[i])
	}
	return views, nil
}

// ahead passes on the records that a list reads, after it has converted the next of
// them all at once. An object that cannot be converted fails when its turn comes.
func (t *Table) ahead(records iter.Seq[*record.Record], limit int64) iter.Seq[*record.Record] {
	if t.dynamic == nil {
		return records
	}
	batch := convertBatch
	if limit > 0 && limit < convertBatch {
		batch = int(limit) + 1 // a page looks whether there is one more
	}
	return func(yield func(*record.Record) bool) {
		next := make([]*record.Record, 0, batch)
		flush := func() bool {
			t.convertMissing(next)
			for _, r := range next {
				if !yield(r) {
					return false
				}
			}
			next = next[:0]
			return true
		}
		for r := range records {
			next = append(next, r)
			if len(next) == batch && !flush() {
				return
			}
		}
		flush()
	}
}

func (t *Table) convertMissing(records []*record.Record) {
	var missing []*Cached
	for _, r := range records {
		if kept, err := t.store.codec.decode(t.stored, r); err == nil && kept.viewIn(t) == nil {
			missing = append(missing, kept)
		}
	}
	if len(missing) > 1 {
		_, _ = t.convert(missing) // asked again one by one, so the error is told there
	}
}

// Outdated reports that the current object is kept under another version than new
// writes get, or encrypted in another way: writing it again, unchanged, migrates it.
func (v *View) Outdated() bool {
	if v.record == nil {
		return false
	}
	if _, outdated, _ := v.table.store.codec.seals.open(v.table.stored.StorageResource(), v.record); outdated {
		return true
	}
	if v.table.dynamic == nil {
		return false
	}
	kept, err := v.table.store.codec.decode(v.table.stored, v.record)
	return err == nil && kept.object.(*unstructured.Unstructured).GetAPIVersion() != v.table.dynamic.StorageVersion
}

// shallowUnstructured copies the top of an object and its metadata: enough to change metadata scalars.
func shallowUnstructured(u *unstructured.Unstructured) *unstructured.Unstructured {
	top := maps.Clone(u.Object)
	if metadata, ok := top["metadata"].(map[string]any); ok {
		top["metadata"] = maps.Clone(metadata)
	}
	return &unstructured.Unstructured{Object: top}
}

// decodeDynamic reads an object as it is kept, without what a schema would add.
func decodeDynamic(text []byte) (resource.Object, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(text)
}
