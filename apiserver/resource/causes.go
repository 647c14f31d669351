package resource

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InternalValues shows the values in errors as upstream shows them, whose rules look at
// unpublished types: their fields have no names in JSON but those that Go has for them,
// and none is left out.
func InternalValues(errs field.ErrorList) field.ErrorList {
	for i, err := range errs {
		if v := reflect.ValueOf(err.BadValue); v.IsValid() && published(v.Type()) {
			shown := *err
			shown.BadValue = internalValue{v}
			errs[i] = &shown
		}
	}
	return errs
}

// Diff shows how two structs of an API group differ, as upstream does: line by line,
// by Go's names.
func Diff(old, changed any) string {
	return diff.Diff(internalValue{reflect.ValueOf(old)}, internalValue{reflect.ValueOf(changed)})
}

// published tells whether a type is a struct of an API group, or made of some.
func published(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

type internalValue struct{ value reflect.Value }

func (v internalValue) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	err := writeInternal(&out, v.value)
	return out.Bytes(), err
}

func writeInternal(out *bytes.Buffer, v reflect.Value) error {
	switch t := v.Type(); {
	case t.Kind() == reflect.Pointer && !v.IsNil():
		return writeInternal(out, v.Elem())
	case !published(t):
		text, err := json.Marshal(v.Interface())
		out.Write(text)
		return err
	case t.Kind() == reflect.Struct:
		out.WriteByte('{')
		if err := writeFields(out, v); err != nil {
			return err
		}
		out.WriteByte('}')
		return nil
	case v.IsNil():
		out.WriteString("null")
		return nil
	case t.Kind() == reflect.Map:
		return writeMap(out, v)
	default:
		return writeList(out, v)
	}
}

// writeFields writes those of an embedded struct among the others. Metadata has its
// own names in JSON, for upstream's rules too.
func writeFields(out *bytes.Buffer, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && published(f.Type) {
			if err := writeFields(out, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		if f.Anonymous {
			text, err := json.Marshal(v.Field(i).Interface())
			if err != nil {
				return err
			}
			if text = text[1 : len(text)-1]; len(text) > 0 {
				separate(out)
				out.Write(text)
			}
			continue
		}
		separate(out)
		out.WriteString(`"` + f.Name + `":`)
		if err := writeInternal(out, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func writeMap(out *bytes.Buffer, v reflect.Value) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	out.WriteByte('{')
	for _, key := range keys {
		name, err := json.Marshal(key.String())
		if err != nil {
			return err
		}
		separate(out)
		out.Write(append(name, ':'))
		if err := writeInternal(out, v.MapIndex(key)); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeList(out *bytes.Buffer, v reflect.Value) error {
	out.WriteByte('[')
	for i := range v.Len() {
		separate(out)
		if err := writeInternal(out, v.Index(i)); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

// separate writes a comma unless what follows is the first of its kind.
func separate(out *bytes.Buffer) {
	if last := out.Bytes()[out.Len()-1]; last != '{' && last != '[' {
		out.WriteByte(',')
	}
}
