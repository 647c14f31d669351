package storage

import (
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// Metadata returns a view of the table for readers that need only names, owner references and deletion
// timestamps: its objects are *metav1.PartialObjectMetadata without labels, annotations and managers. It can be
// listed and watched, selected by name only. Objects that nobody else has decoded are not decoded for it. Of one that
// nobody can decode there is what its record says: it exists, and stands in nobody's way.
func (t *Table) Metadata() *Table {
	view := *t
	kind := *t.kind
	kind.New = func() resource.Object { return &metav1.PartialObjectMetadata{} }
	kind.Fields, kind.Bookmark = nil, nil
	view.kind, view.dynamic, view.metadataOnly = &kind, nil, true
	return &view
}

// decodeMetadata takes the metadata from the record's object, if there is one, or
// else from the stored bytes.
func (c codec) decodeMetadata(kind *resource.Any, r *record.Record) (*Cached, error) {
	if cached, ok := r.Memo().(*Cached); ok {
		return &Cached{object: briefly(cached.object)}, nil
	}
	value, _, err := c.seals.open(kind.StorageResource(), r)
	if err != nil {
		return nil, err
	}
	var whole metav1.PartialObjectMetadata
	if err := c.readMetadata(value, &whole); err != nil || whole.Name != path.Base(r.Key) {
		whole = metav1.PartialObjectMetadata{ObjectMeta: recorded(kind, r)}
	}
	whole.ResourceVersion = formatRevision(r.ModRevision)
	return &Cached{object: briefly(&whole)}, nil
}

// recorded is the metadata that the record of an object shows without its value.
func recorded(kind *resource.Any, r *record.Record) metav1.ObjectMeta {
	folder, name := path.Split(r.Key)
	m := metav1.ObjectMeta{Name: name, UID: types.UID(r.UID)}
	if !kind.ClusterScoped {
		m.Namespace = path.Base(folder)
	}
	return m
}

// readMetadata reads the first field of any kind's message, which is the metadata;
// the reader passes over those that it does not know.
func (c codec) readMetadata(value []byte, into *metav1.PartialObjectMetadata) error {
	switch {
	case len(value) > 0 && value[0] == command.EncodingJSON:
		return json.Unmarshal(value[1:], into)
	case len(value) == 0 || value[0] != command.EncodingProtobuf:
		return errUnknownEncoding
	}
	var envelope runtime.Unknown
	if _, _, err := c.serializer.Decode(value[1:], nil, &envelope); err != nil {
		return err
	}
	return into.Unmarshal(envelope.Raw)
}

func briefly(o metav1.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
		OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(),
	}}
}
