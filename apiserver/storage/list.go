package storage

import (
	"cmp"
	"context"
	"errors"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// Selection says which objects of a table are wanted.
type Selection struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
}

// ListOptions says at which revision to list and how much.
type ListOptions struct {
	Selection
	ResourceVersion string
	Match           metav1.ResourceVersionMatch
	Limit           int64
	Continue        string
}

// Page is one cut of a table, or a part of it.
type Page struct {
	Items           []*Cached
	ResourceVersion string
	Continue        string
	Remaining       *int64
}

// Get returns one object as resourceVersion asks: "" linearizable, "0" from this
// replica, N not older than N. A missing object is a NotFound error.
func (t *Table) Get(ctx context.Context, namespace, name, resourceVersion string) (*Cached, error) {
	root, err := t.getRoot(ctx, namespace, name, resourceVersion)
	if err != nil {
		return nil, err
	}
	r, ok := root.Get(t.key(namespace, name))
	if !ok {
		return nil, t.notFound(name)
	}
	if resourceVersion == "" {
		return t.decodeAnew(r)
	}
	return t.decode(r)
}

func (t *Table) notFound(name string) error {
	return apierrors.NewNotFound(t.kind.GroupResource(), name)
}

// decode returns the record in this table's version; another version than the stored one is converted each time. A record of the past
// whose key was replaced is as gone as if its revision were compacted: 410.
func (t *Table) decode(r *record.Record) (*Cached, error) {
	cached, err := t.decodeRecord(r)
	if one := (*unreadable)(nil); errors.As(err, &one) && t.isPast(r) {
		return nil, expired("an object of that revision was encrypted with a key that was replaced: list again")
	}
	return cached, err
}

// isPast reports whether what is at the record's key now can be read, or is gone.
func (t *Table) isPast(r *record.Record) bool {
	now, there := t.store.log.Root().Get(r.Key)
	if !there {
		return true
	}
	if now.ModRevision <= r.ModRevision {
		return false
	}
	_, err := t.decodeRecord(now)
	return err == nil
}

func (t *Table) decodeRecord(r *record.Record) (*Cached, error) {
	if t.metadataOnly {
		return t.store.codec.decodeMetadata(t.stored, r)
	}
	cached, err := t.store.codec.decode(t.stored, r)
	switch {
	case err == nil && t.dynamic != nil:
		return t.view(cached)
	case err != nil || t.kind.FromStored == nil:
		return cached, err
	}
	return &Cached{object: t.kind.FromStored(cached.object)}, nil
}

// List returns the selected objects in key order, all of one revision.
func (t *Table) List(ctx context.Context, o ListOptions) (*Page, error) {
	c, err := t.listCut(ctx, o)
	if err != nil {
		return nil, err
	}
	page := &Page{ResourceVersion: formatRevision(c.root.Revision)}
	if name, ok := o.singleName(); ok && o.Continue == "" && (o.Namespace != "" || t.kind.ClusterScoped) {
		return page, t.listOne(c.root, o, name, page)
	}
	return page, t.listMany(c, o, page)
}

func (t *Table) listOne(root *state.Root, o ListOptions, name string, page *Page) error {
	r, ok := root.Get(t.key(o.Namespace, name))
	if !ok {
		return nil
	}
	cached, err := t.pick(o.Selection, r)
	if cached != nil {
		page.Items = append(page.Items, cached)
	}
	return err
}

func (t *Table) listMany(c cut, o ListOptions, page *Page) error {
	prefix := t.namespacePrefix(o.Namespace)
	var last *record.Record
	var failed unreadables
	for r := range t.ahead(c.root.From(prefix, c.from), o.Limit) {
		if o.Limit > 0 && int64(len(page.Items)) == o.Limit {
			return cmp.Or(failed.err(t.kind.GroupResource()), t.endPage(c, prefix, c.behind(last), o, page))
		}
		last = r
		cached, err := t.pick(o.Selection, r)
		switch {
		case err != nil && apierrors.IsResourceExpired(err) && o.Continue != "":
			return expiredPage(c.from, prefix)
		case err != nil && apierrors.IsResourceExpired(err):
			return err
		case err != nil && !failed.add(err):
			return cmp.Or(failed.err(t.kind.GroupResource()), err)
		case cached != nil:
			page.Items = append(page.Items, cached)
		}
	}
	return failed.err(t.kind.GroupResource())
}

// listCut resolves resourceVersion, match, limit and continue to what is read.
func (t *Table) listCut(ctx context.Context, o ListOptions) (cut, error) {
	if o.Continue != "" {
		return t.continueCut(ctx, o)
	}
	root, err := t.listRoot(ctx, o)
	return cut{root: root, begin: time.Now()}, err
}

func (t *Table) listRoot(ctx context.Context, o ListOptions) (*state.Root, error) {
	exact := o.Match == metav1.ResourceVersionMatchExact ||
		(o.Match == "" && o.Limit > 0 && o.ResourceVersion != "" && o.ResourceVersion != "0")
	if !exact {
		return t.store.rootAtLeast(ctx, o.ResourceVersion)
	}
	revision, err := ParseResourceVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	root, err := t.rootOf(ctx, o.Namespace, t.namespacePrefix(o.Namespace), revision)
	if errors.Is(err, errCompacted) {
		return nil, expired("The resourceVersion for the provided list is too old." + reachOf(err))
	}
	return root, err
}

func (o Selection) everything() bool {
	return (o.Labels == nil || o.Labels.Empty()) && (o.Fields == nil || o.Fields.Empty())
}

func (o Selection) singleName() (string, bool) {
	if o.Fields == nil {
		return "", false
	}
	return o.Fields.RequiresExactMatch("metadata.name")
}

// pick returns a record's object, or nil if it is not selected. A record of another name than the wanted one is not even decoded.
func (t *Table) pick(o Selection, r *record.Record) (*Cached, error) {
	if o.everything() {
		return t.decode(r)
	}
	if name, one := o.singleName(); one && path.Base(r.Key) != name {
		return nil, nil
	}
	cached, err := t.decode(r)
	if err != nil || !t.selected(o, cached.object) {
		return nil, err
	}
	return cached, nil
}

func (t *Table) selected(o Selection, obj resource.Object) bool {
	if o.Labels != nil && !o.Labels.Empty() && !o.Labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	return o.Fields == nil || o.Fields.Empty() || o.Fields.Matches(t.fields(obj))
}

func (t *Table) fields(obj resource.Object) fields.Set {
	set := fields.Set{}
	if t.kind.Fields != nil {
		set = t.kind.Fields(obj)
	}
	set["metadata.name"] = obj.GetName()
	if t.kind.Namespaced() {
		set["metadata.namespace"] = obj.GetNamespace()
	}
	return set
}
