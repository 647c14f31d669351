package managedfields

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// equal reports whether two values of the same shape are equal, in the eyes of
// those who own their fields: by their JSON forms. The field reset of the top is
// left out.
func (n *node) equal(a, b reflect.Value, reset string) bool {
	if a.Kind() == reflect.Pointer {
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		a, b = a.Elem(), b.Elem()
	}
	switch n.form {
	case leaf:
		if a.Kind() == reflect.Slice {
			return bytes.Equal(a.Bytes(), b.Bytes())
		}
		return a.Equal(b)
	case moment:
		return momentOf(a).Unix() == momentOf(b).Unix()
	case microMoment:
		return momentOf(a).UnixMicro() == momentOf(b).UnixMicro()
	case quantity:
		p, q := a.Interface().(resource.Quantity), b.Interface().(resource.Quantity)
		return p.String() == q.String()
	case record:
		return n.equalRecords(a, b, reset)
	case dict:
		return n.equalDicts(a, b)
	case list:
		return n.equalLists(a, b)
	default:
		return equalJSON(a, b)
	}
}

// equalJSON compares what is owned as one: equal in Go is equal; otherwise an empty
// list may still look like another.
func equalJSON(a, b reflect.Value) bool {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return true
	}
	p, errA := json.Marshal(a.Interface())
	q, errB := json.Marshal(b.Interface())
	return errA == nil && errB == nil && bytes.Equal(p, q)
}

func (n *node) equalRecords(a, b reflect.Value, reset string) bool {
	for _, f := range n.fields {
		if reset != "" && f.entry.JsonName == reset {
			continue
		}
		field := f.entry.GetFrom(a)
		if !f.entry.CanOmit(field) && !f.node.equal(field, f.entry.GetFrom(b), "") {
			return false
		}
	}
	return true
}

func (n *node) equalDicts(a, b reflect.Value) bool {
	for iterator := a.MapRange(); iterator.Next(); {
		other := b.MapIndex(iterator.Key())
		if !other.IsValid() || !n.element.equal(iterator.Value(), other, "") {
			return false
		}
	}
	return true
}

func (n *node) equalLists(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !n.element.equal(a.Index(i), b.Index(i), "") {
			return false
		}
	}
	return true
}

// looksZero reports whether a struct has the JSON form of an empty one. A scalar
// that is set settles it at once.
func looksZero(v reflect.Value) bool {
	if v.IsZero() {
		return true
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String && f.Len() > 0 && v.Type().Field(i).Tag.Get("json") != "-" {
			return false
		}
	}
	return equalJSON(v, reflect.Zero(v.Type()))
}
