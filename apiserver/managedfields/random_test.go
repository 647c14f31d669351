package managedfields

import (
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var words = []string{"", "a", "b", "c"}

// valuesMax is how many values an object is filled with; some types contain themselves.
const valuesMax = 2000

// special fills types that have a form of their own.
func (r *random) special(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = []metav1.Time{{}, metav1.Unix(1, 0), metav1.Unix(2, 5), metav1.Unix(2, 7)}[r.Intn(4)]
	case *metav1.MicroTime:
		*p = metav1.MicroTime{Time: []time.Time{{}, time.Unix(1, 0), time.Unix(1, 1000), time.Unix(1, 1001)}[r.Intn(4)]}
	case *resource.Quantity:
		*p = []resource.Quantity{{}, resource.MustParse("1"), resource.MustParse("1000m"), resource.MustParse("0")}[r.Intn(4)]
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{{}, intstr.FromInt32(1), intstr.FromString(""), intstr.FromString("a")}[r.Intn(4)]
	case *apiextensionsv1.JSON:
		p.Raw = [][]byte{nil, []byte(`{"a":1}`), []byte(`"b"`)}[r.Intn(3)]
	case *runtime.RawExtension:
		p.Raw = [][]byte{nil, []byte(`{"a":1}`), []byte(`[1]`)}[r.Intn(3)]
	case *metav1.FieldsV1:
		p.SetRawString(`{"f:a":{}}`)
	default:
		return false
	}
	return true
}

func (r *random) fill(v reflect.Value) {
	if r.values--; r.values < 0 || !v.CanSet() || r.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if r.Intn(r.sparse) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.fill(v.Field(i))
		}
	case reflect.Slice:
		if n := r.Intn(4); n > 0 && r.Intn(r.sparse) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
			for i := range n - 1 {
				r.fill(v.Index(i))
			}
		}
	case reflect.Map:
		r.fillMap(v)
	default:
		r.scalar(v)
	}
}

func (r *random) fillMap(v reflect.Value) {
	n := r.Intn(4)
	if n == 0 || r.Intn(r.sparse) > 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n - 1 {
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		r.scalar(key)
		r.fill(element)
		v.SetMapIndex(key, element)
	}
}

func (r *random) scalar(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(words[r.Intn(len(words))])
	case v.Kind() == reflect.Bool:
		v.SetBool(r.Intn(2) == 0)
	case v.CanInt():
		v.SetInt(int64(r.Intn(3)))
	case v.CanUint():
		v.SetUint(uint64(r.Intn(3)))
	case v.CanFloat():
		v.SetFloat(float64(r.Intn(3)))
	}
}

// change gives one of seldom values another one; most of what there is stays there.
func (r *random) change(v reflect.Value, seldom int) {
	switch {
	case !v.CanSet():
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface:
		if !v.IsNil() {
			r.change(v.Elem(), seldom)
		}
	case v.Addr().Type().Implements(reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]()):
		if r.Intn(seldom) == 0 {
			r.special(v)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			r.change(v.Field(i), seldom)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			r.change(v.Index(i), seldom)
		}
	case v.Kind() == reflect.Map:
		r.changeMap(v, seldom)
	case v.IsZero():
		if r.Intn(20*seldom) == 0 {
			r.scalar(v)
		}
	case r.Intn(seldom) == 0:
		r.scalar(v)
	}
}

func (r *random) changeMap(v reflect.Value, seldom int) {
	for _, key := range v.MapKeys() {
		element := reflect.New(v.Type().Elem()).Elem()
		element.Set(v.MapIndex(key))
		r.change(element, seldom)
		v.SetMapIndex(key, element)
	}
}
