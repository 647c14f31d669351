package managedfields

import (
	"bytes"
	"reflect"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// ShapesBytesMax bounds what is remembered for one kind: shapes and their
	// fields. When it is reached all of it is forgotten.
	ShapesBytesMax = 1 << 20
	// shapeBytesMax is the largest shape that is remembered with its fields.
	shapeBytesMax = 16 << 10
)

// Config is what Owners are made of. All fields but Reset are required.
type Config struct {
	Kind schema.GroupVersionKind
	// New returns an empty object of the kind.
	New func() resource.Object
	// Upstream is the field manager that stands behind, made for the same kind.
	Upstream *managedfields.FieldManager
	// Converter knows the kind's schema. It is asked at the first write.
	Converter managedfields.TypeConverter
	// Reset is the top-level field that writes to this endpoint do not own, or "".
	// Upstream must have been told the same.
	Reset string
}

// Owners keeps the managedFields of one kind's objects.
type Owners struct {
	config  Config
	prepare sync.Once
	root    *node // nil if there is no schema, or no Go type: then upstream answers

	mu sync.RWMutex
	// fields are those of an object, by its shape; "" if it has none to own.
	fields map[string]string
	bytes  int
}

// New returns Owners that remember nothing yet.
func New(config Config) *Owners {
	return &Owners{config: config, fields: map[string]string{}}
}

// Created sets the managedFields of an object that manager creates, and returns it.
func (o *Owners) Created(obj resource.Object, manager string) runtime.Object {
	fields, known := "", false
	if obj.GetManagedFields() == nil && utf8.ValidString(manager) {
		fields, known = o.fieldsOf(obj)
	}
	if !known {
		return o.config.Upstream.UpdateNoErrors(o.config.New(), obj, manager)
	}
	obj.GetObjectKind().SetGroupVersionKind(o.config.Kind)
	if fields != "" {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{o.entry(manager, fields)})
	}
	return obj
}

// Updated sets the managedFields of what manager makes of live, and returns it. It
// changes live no more than upstream does: its type is set.
func (o *Owners) Updated(live, obj resource.Object, manager string) runtime.Object {
	own, sole := o.soleEntry(live, obj, manager)
	if !sole || !o.sameFields(live, obj, own.FieldsV1) {
		return o.config.Upstream.UpdateNoErrors(live, obj, manager)
	}
	obj.GetObjectKind().SetGroupVersionKind(o.config.Kind)
	if !o.root.equal(reflect.ValueOf(live), reflect.ValueOf(obj), o.config.Reset) {
		own = o.entry(manager, own.FieldsV1.GetRawString())
	}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{own})
	return obj
}

func (o *Owners) entry(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: nameOf(manager), Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: o.config.Kind.GroupVersion().String(),
		Time: &metav1.Time{Time: time.Now().UTC()}, FieldsType: fieldsType, FieldsV1: metav1.NewFieldsV1(fields),
	}
}

const fieldsType = "FieldsV1"

// nameOf is upstream's name for a manager that gave none.
func nameOf(manager string) string {
	if manager == "" {
		return "unknown"
	}
	return manager
}

// soleEntry returns the entry of live if it is the only one, made by updates of
// this manager, and the client did not change it in obj.
func (o *Owners) soleEntry(live, obj resource.Object, manager string) (metav1.ManagedFieldsEntry, bool) {
	entries := live.GetManagedFields()
	if len(entries) != 1 {
		return metav1.ManagedFieldsEntry{}, false
	}
	own := entries[0]
	if own.Manager != nameOf(manager) || own.Operation != metav1.ManagedFieldsOperationUpdate ||
		own.APIVersion != o.config.Kind.GroupVersion().String() ||
		own.Subresource != "" || own.FieldsType != fieldsType || own.FieldsV1 == nil ||
		own.Time == nil {
		return own, false
	}
	sent := obj.GetManagedFields()
	return own, sent == nil || len(sent) == 1 && sameEntry(sent[0], own)
}

// Same reports whether two lists are equal. An entry without a time or fields
// equals none, not even itself.
func Same(a, b []metav1.ManagedFieldsEntry) bool { return slices.EqualFunc(a, b, sameEntry) }

func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource &&
		a.FieldsType == b.FieldsType && a.FieldsV1 != nil && b.FieldsV1 != nil && a.FieldsV1.Equal(*b.FieldsV1) &&
		a.Time != nil && a.Time.Equal(b.Time)
}

// sameFields reports whether live and obj have the same shape, and own is all that
// such an object has: then an update neither gives nor takes fields.
func (o *Owners) sameFields(live, obj resource.Object, own *metav1.FieldsV1) bool {
	fields, known := o.fieldsOf(obj)
	if !known || fields == "" || fields != own.GetRawString() {
		return false
	}
	before, after := o.shape(live), o.shape(obj)
	defer before.free()
	defer after.free()
	return !before.unknown && !after.unknown && bytes.Equal(before.bytes, after.bytes)
}

// fieldsOf returns the fields that whoever creates obj owns. known is false where
// only upstream can tell.
func (o *Owners) fieldsOf(obj resource.Object) (fields string, known bool) {
	s := o.shape(obj)
	defer s.free()
	if s.unknown {
		return "", false
	}
	o.mu.RLock()
	fields, known = o.fields[string(s.bytes)]
	o.mu.RUnlock()
	if known {
		return fields, true
	}
	return o.learn(s, obj)
}

// learn asks upstream for the fields of a shape, by a copy of an object that has it.
func (o *Owners) learn(s *shape, obj resource.Object) (fields string, known bool) {
	sample := obj.DeepCopyObject().(resource.Object)
	sample.SetManagedFields(nil)
	created, err := o.config.Upstream.Update(o.config.New(), sample, "")
	if err != nil {
		return "", false
	}
	switch entries := created.(resource.Object).GetManagedFields(); len(entries) {
	case 0:
	case 1:
		fields = entries[0].FieldsV1.GetRawString()
	default:
		return "", false
	}
	o.remember(string(s.bytes), fields)
	return fields, true
}

func (o *Owners) remember(shape, fields string) {
	size := len(shape) + len(fields)
	if size > shapeBytesMax {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes+size > ShapesBytesMax {
		clear(o.fields)
		o.bytes = 0
	}
	if _, known := o.fields[shape]; !known {
		o.fields[shape] = fields
		o.bytes += size
	}
}

// shape writes down the shape of an object; free gives it back.
func (o *Owners) shape(obj resource.Object) *shape {
	o.prepare.Do(o.compile)
	s := shapes.Get().(*shape)
	s.bytes, s.unknown = s.bytes[:0], o.root == nil
	if o.root != nil {
		o.root.write(s, reflect.ValueOf(obj))
	}
	return s
}

var shapes = sync.Pool{New: func() any { return &shape{} }}

func (s *shape) free() {
	if cap(s.bytes) <= shapeBytesMax {
		shapes.Put(s)
	}
}

func (o *Owners) compile() {
	obj := o.config.New()
	if _, dynamic := obj.(runtime.Unstructured); dynamic {
		return // its Go type says nothing of its fields
	}
	obj.GetObjectKind().SetGroupVersionKind(o.config.Kind)
	typed, err := o.config.Converter.ObjectToTyped(obj)
	if err != nil {
		return
	}
	c := compiler{schema: typed.Schema(), nodes: map[nodeKey]*node{}}
	o.root = c.compileObject(reflect.TypeOf(obj), typed.TypeRef())
}
