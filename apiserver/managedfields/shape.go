package managedfields

import (
	"encoding/binary"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// shape is what of an object decides which fields it has, as text: two objects of
// a kind whose shapes are equal have the same fields.
type shape struct {
	bytes []byte
	// unknown: the object holds something whose fields only upstream can tell.
	unknown bool
}

// What a value is, as far as its fields are concerned. Each byte says what follows
// it, so no two different shapes have the same text.
const (
	absent byte = iota // left out of the object's JSON form
	null
	zero // equal to what an empty object has there
	full
)

// node writes the shape of the values at one place of a kind.
type node struct {
	form form
	// identity: the value is part of a key by which a list's items are told apart.
	identity bool
	// fixed: an empty object has a value there too, which this one is compared with.
	fixed bool
	// fields of a record; of a list, those by which its items are told apart.
	fields  []fieldNode
	element *node // of a dict or list
}

type form int

const (
	opaque form = iota // only upstream can tell
	leaf               // a scalar, or bytes
	atom               // a map, list or struct owned as one
	moment             // metav1.Time
	microMoment
	quantity
	intOrString
	record
	dict
	list
)

type fieldNode struct {
	entry *value.FieldCacheEntry
	node  *node
}

func (s *shape) add(b byte) { s.bytes = append(s.bytes, b) }

func (s *shape) addText(text string) {
	s.bytes = binary.AppendUvarint(s.bytes, uint64(len(text)))
	s.bytes = append(s.bytes, text...)
}

// write appends the shape of v. Once something is unknown the rest does not matter.
func (n *node) write(s *shape, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			s.add(null)
			return
		}
		v = v.Elem()
	}
	switch n.form {
	case leaf:
		n.writeLeaf(s, v)
	case atom:
		n.writeAtom(s, v)
	case record:
		n.writeRecord(s, v)
	case dict:
		n.writeDict(s, v)
	case list:
		n.writeList(s, v)
	case opaque:
		s.unknown = s.unknown || !isNull(v)
		s.add(null)
	default:
		n.writeConverted(s, v)
	}
}

func isNull(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Interface:
		return v.IsNil()
	default:
		return false
	}
}

func (s *shape) addZero(isZero bool) {
	if isZero {
		s.add(zero)
	} else {
		s.add(full)
	}
}

func (n *node) writeLeaf(s *shape, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Slice: // of bytes
		n.writeAtom(s, v)
	case !n.identity:
		s.addZero(v.IsZero())
	case v.Kind() == reflect.String:
		s.add(full)
		s.addText(v.String())
	case v.CanInt():
		s.add(full)
		s.bytes = binary.AppendVarint(s.bytes, v.Int())
	default:
		s.unknown = true
	}
}

func (n *node) writeAtom(s *shape, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		s.addZero(n.fixed && looksZero(v))
	default:
		if v.IsNil() {
			s.add(null)
		} else {
			s.addZero(v.Len() == 0)
		}
	}
}

// writeConverted writes values that have a JSON form of their own.
func (n *node) writeConverted(s *shape, v reflect.Value) {
	switch n.form {
	case moment, microMoment:
		if v.IsZero() || momentOf(v).Time.IsZero() {
			s.add(null)
		} else {
			s.add(full)
		}
	case quantity:
		q := v.Interface().(resource.Quantity)
		s.addZero(q.String() == "0")
	case intOrString:
		i := v.Interface().(intstr.IntOrString)
		s.add(byte(i.Type))
		s.addZero(i.Type == intstr.Int && i.IntVal == 0 || i.Type == intstr.String && i.StrVal == "")
		s.unknown = s.unknown || i.Type != intstr.Int && i.Type != intstr.String
	}
}

func momentOf(v reflect.Value) metav1.Time {
	switch t := v.Interface().(type) {
	case metav1.MicroTime:
		return metav1.Time(t)
	default:
		return v.Interface().(metav1.Time)
	}
}

func (n *node) writeRecord(s *shape, v reflect.Value) {
	s.add(full)
	n.writeFields(s, v)
}

func (n *node) writeFields(s *shape, v reflect.Value) {
	for _, f := range n.fields {
		field := f.entry.GetFrom(v)
		if f.entry.CanOmit(field) {
			s.add(absent)
			continue
		}
		f.node.write(s, field)
	}
}

func (n *node) writeDict(s *shape, v reflect.Value) {
	if v.IsNil() {
		s.add(null)
		return
	}
	s.add(full)
	s.bytes = binary.AppendUvarint(s.bytes, uint64(v.Len()))
	for _, key := range sortedKeys(v) {
		s.addText(key)
		n.element.write(s, v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key())))
	}
}

func sortedKeys(v reflect.Value) []string {
	keys := make([]string, 0, v.Len())
	for iterator := v.MapRange(); iterator.Next(); {
		keys = append(keys, iterator.Key().String())
	}
	slices.Sort(keys)
	return keys
}

func (n *node) writeList(s *shape, v reflect.Value) {
	if v.IsNil() {
		s.add(null)
		return
	}
	s.add(full)
	s.bytes = binary.AppendUvarint(s.bytes, uint64(v.Len()))
	for i := range v.Len() {
		item := v.Index(i)
		if len(n.fields) > 0 {
			n.writeKey(s, item)
		}
		n.element.write(s, item)
	}
}

// writeKey writes by what a list tells an item from the others: items may be
// owned as a whole, and then do not show it.
func (n *node) writeKey(s *shape, item reflect.Value) {
	if item.Kind() == reflect.Pointer {
		if item.IsNil() {
			s.unknown = true
			return
		}
		item = item.Elem()
	}
	n.writeFields(s, item)
}
