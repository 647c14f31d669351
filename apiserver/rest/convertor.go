package rest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// convertor converts between the versions that a scheme knows. Objects here have no
// form of their own beside the versions: from one to itself is a copy of the top, and
// two versions of one kind meet in the form in which it is stored. Admission asks for
// both.
type convertor struct {
	*runtime.Scheme
	kinds map[reflect.Type]*resource.Any
}

func newConvertor(scheme *runtime.Scheme, kinds []*resource.Any) convertor {
	c := convertor{Scheme: scheme, kinds: map[reflect.Type]*resource.Any{}}
	for _, kind := range kinds {
		c.kinds[reflect.TypeOf(kind.New())] = kind
	}
	return c
}

// Convert implements runtime.ObjectConvertor.
func (c convertor) Convert(in, out, context any) error {
	if sameType(in, out) {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in).Elem())
		return nil
	}
	from, to := c.kinds[reflect.TypeOf(in)], c.kinds[reflect.TypeOf(out)]
	if from == nil || to == nil || from.StorageResource() != to.StorageResource() {
		return c.Scheme.Convert(in, out, context)
	}
	stored := in.(resource.Object)
	if from.ToStored != nil {
		stored = from.ToStored(stored)
	}
	if to.FromStored != nil {
		stored = to.FromStored(stored)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(stored).Elem())
	return nil
}

// fieldVersions converts for the managed fields, which compare an object in each
// version in which somebody owns a field. It may share memory with its argument.
type fieldVersions struct{ convertor }

// ConvertToVersion implements runtime.ObjectConvertor.
func (f fieldVersions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	from := f.kinds[reflect.TypeOf(in)]
	for _, to := range f.kinds {
		if from == nil || to == from || to.StorageResource() != from.StorageResource() {
			continue
		}
		wanted, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{to.GroupVersionKind})
		if !ok || wanted != to.GroupVersionKind {
			continue
		}
		out := to.New()
		if err := f.Convert(in, out, nil); err != nil {
			return nil, err
		}
		out.GetObjectKind().SetGroupVersionKind(to.GroupVersionKind)
		return out, nil
	}
	return f.Scheme.UnsafeConvertToVersion(in, target)
}

func sameType(in, out any) bool {
	t := reflect.TypeOf(in)
	return t == reflect.TypeOf(out) && t.Kind() == reflect.Pointer
}

// newEquivalents returns a registry of resources that show the same objects: a
// webhook for one of them hears of writes to the others.
func newEquivalents(kinds []*resource.Any) runtime.EquivalentResourceRegistry {
	stored := make(map[schema.GroupResource]string, len(kinds))
	for _, kind := range kinds {
		stored[kind.GroupResource()] = kind.StorageResource().String()
	}
	return runtime.NewEquivalentResourceRegistryWithIdentity(func(gr schema.GroupResource) string { return stored[gr] })
}
