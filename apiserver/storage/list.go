package storage

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// compactedContinue marks a token whose snapshot is gone: the client agreed to
// go on with the rest of a newer one.
const compactedContinue = -1

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
	root, err := t.store.rootAtLeast(ctx, resourceVersion)
	if err != nil {
		return nil, err
	}
	r, ok := root.Get(t.key(namespace, name))
	if !ok {
		return nil, t.notFound(name)
	}
	return t.decode(r)
}

func (t *Table) notFound(name string) error {
	return apierrors.NewNotFound(t.kind.GroupResource(), name)
}

// decode returns the record in this table's version; another version than the
// stored one is converted each time.
func (t *Table) decode(r *record.Record) (*Cached, error) {
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
	root, from, err := t.listRoot(ctx, o)
	if err != nil {
		return nil, err
	}
	page := &Page{ResourceVersion: formatRevision(root.Revision)}
	if name, ok := o.singleName(); ok && o.Continue == "" && (o.Namespace != "" || t.kind.ClusterScoped) {
		return page, t.listOne(root, o, name, page)
	}
	return page, t.listMany(root, from, o, page)
}

func (t *Table) listOne(root *state.Root, o ListOptions, name string, page *Page) error {
	r, ok := root.Get(t.key(o.Namespace, name))
	if !ok {
		return nil
	}
	cached, err := t.decode(r)
	if err == nil && t.selected(o.Selection, cached.object) {
		page.Items = append(page.Items, cached)
	}
	return err
}

func (t *Table) listMany(root *state.Root, from string, o ListOptions, page *Page) error {
	prefix := t.namespacePrefix(o.Namespace)
	next := from
	for r := range t.ahead(root.From(prefix, from), o.Limit) {
		if o.Limit > 0 && int64(len(page.Items)) == o.Limit {
			return t.endPage(root, prefix, next, o, page)
		}
		next = r.Key + endOfKey
		cached, err := t.decode(r)
		if err != nil {
			return err
		}
		if t.selected(o.Selection, cached.object) {
			page.Items = append(page.Items, cached)
		}
	}
	return nil
}

// endOfKey behind a key is the next there can be: whoever goes on from there in a
// newer cut sees what came between.
const endOfKey = "\x00"

func (t *Table) endPage(root *state.Root, prefix, next string, o ListOptions, page *Page) error {
	token, err := storage.EncodeContinue(next, prefix, int64(root.Revision))
	if err != nil {
		return err
	}
	page.Continue = token
	if o.everything() {
		remaining := int64(root.CountFrom(prefix, next))
		page.Remaining = &remaining
	}
	return nil
}

// listRoot resolves resourceVersion, match, limit and continue to a root and
// the key to start at.
func (t *Table) listRoot(ctx context.Context, o ListOptions) (root *state.Root, from string, err error) {
	if o.Continue != "" {
		return t.continueRoot(ctx, o)
	}
	exact := o.Match == metav1.ResourceVersionMatchExact ||
		(o.Match == "" && o.Limit > 0 && o.ResourceVersion != "" && o.ResourceVersion != "0")
	if !exact {
		root, err = t.store.rootAtLeast(ctx, o.ResourceVersion)
		return root, "", err
	}
	revision, err := ParseResourceVersion(o.ResourceVersion)
	if err != nil {
		return nil, "", err
	}
	root, err = t.store.rootExactly(ctx, revision)
	if errors.Is(err, errCompacted) {
		return nil, "", expired("The resourceVersion for the provided list is too old.")
	}
	return root, "", err
}

func (t *Table) continueRoot(ctx context.Context, o ListOptions) (*state.Root, string, error) {
	prefix := t.namespacePrefix(o.Namespace)
	from, revision, err := storage.DecodeContinue(o.Continue, prefix)
	if err == nil && revision < compactedContinue {
		err = errForgedContinue
	}
	if err != nil {
		return nil, "", apierrors.NewBadRequest("invalid continue token: " + err.Error())
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return nil, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	if revision == compactedContinue {
		root, err := t.store.rootAtLeast(ctx, "")
		return root, from, err
	}
	root, err := t.store.rootExactly(ctx, uint64(revision))
	if errors.Is(err, errCompacted) {
		return nil, "", expiredPage(from, prefix)
	}
	return root, from, err
}

// expiredPage tells the client that the pages' snapshot is gone and offers a
// token that goes on in the newest one.
func expiredPage(from, prefix string) error {
	err := expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	if token, tokenErr := storage.EncodeContinue(from, prefix, compactedContinue); tokenErr == nil {
		err.ErrStatus.Continue = token
	}
	return err
}

func (s *Store) rootExactly(ctx context.Context, revision uint64) (*state.Root, error) {
	root, err := s.waitRevision(ctx, revision)
	if err != nil || root.Revision == revision {
		return root, err
	}
	return s.log.RootAt(revision)
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
