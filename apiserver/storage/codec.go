package storage

import (
	"bytes"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// codec turns objects into stored values and back. A value is one encoding byte
// and the protobuf envelope that names version and kind, or the JSON of an object
// without a Go type; the resourceVersion is not in it, since the log assigns it. What is
// stored may be its encryption: see seals.
type codec struct {
	serializer *protobuf.Serializer
	// seals encrypts values; nil: nothing does.
	seals *seals
	// shared remembers what was handed out, if the store verifies it; else nil.
	shared *sharedObjects
}

func (c codec) encode(kind *resource.Any, obj resource.Object) ([]byte, error) {
	stored := shallowCopy(obj)
	stored.SetResourceVersion("")
	stored.SetSelfLink("") // of old clients; Kubernetes keeps none
	if u, dynamic := stored.(*unstructured.Unstructured); dynamic {
		value := bytes.NewBuffer([]byte{command.EncodingJSON})
		err := unstructured.UnstructuredJSONScheme.Encode(u, value)
		return value.Bytes(), err
	}
	stored.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	allocator := runtime.AllocatorPool.Get().(*runtime.Allocator)
	defer runtime.AllocatorPool.Put(allocator)
	var value storedValue
	if err := c.serializer.EncodeWithAllocator(stored, &value, allocator); err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", kind.GroupVersionKind.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return value, nil
}

// storedValue collects an encoding behind its encoding byte, in one piece of the right size.
type storedValue []byte

func (v *storedValue) Write(b []byte) (int, error) {
	if *v == nil {
		*v = append(make([]byte, 0, 1+len(b)), command.EncodingProtobuf)
	}
	*v = append(*v, b...)
	return len(b), nil
}

// decode returns the record's object, decoded by whoever asks first.
func (c codec) decode(kind *resource.Any, r *record.Record) (*Cached, error) {
	if cached, ok := r.Memo().(*Cached); ok {
		return cached, nil
	}
	value, _, err := c.seals.open(kind.StorageResource(), r)
	if err != nil {
		return nil, err
	}
	obj, err := c.decodeValue(kind, value)
	if err != nil {
		return nil, fmt.Errorf("decode %s at revision %d: %w", r.Key, r.ModRevision, err)
	}
	obj.SetResourceVersion(formatRevision(r.ModRevision))
	if len(r.Value) > 0 && r.Value[0] == command.EncodingProtobuf { // not encrypted: nobody keeps what it was decrypted to
		shareTexts(obj, r.Value)
	}
	cached := r.SetMemo(&Cached{object: obj}).(*Cached)
	c.shared.remember(cached)
	return cached, nil
}

func (c codec) decodeValue(kind *resource.Any, value []byte) (resource.Object, error) {
	switch {
	case len(value) > 0 && value[0] == command.EncodingJSON:
		return decodeDynamic(value[1:])
	case len(value) == 0 || value[0] != command.EncodingProtobuf:
		return nil, errUnknownEncoding
	}
	decoded, _, err := c.serializer.Decode(value[1:], &kind.GroupVersionKind, kind.New())
	if err != nil {
		return nil, err
	}
	obj := decoded.(resource.Object)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // typed items carry no kind in lists
	if kind.Default != nil {
		kind.Default(obj)
	}
	return obj, nil
}

// shallowCopy copies the top struct only: enough to change metadata scalars and
// the type, which encoders do.
func shallowCopy(obj resource.Object) resource.Object {
	if u, dynamic := obj.(*unstructured.Unstructured); dynamic {
		return shallowUnstructured(u)
	}
	v := reflect.ValueOf(obj).Elem()
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.Interface().(resource.Object)
}
