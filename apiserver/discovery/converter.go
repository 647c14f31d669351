package discovery

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// fallible is a converter whose panics are errors. The library reads raw JSON inside
// of objects as it walks them, and panics at numbers like 1e999; those who validate
// the object say better what is wrong.
type fallible struct{ managedfields.TypeConverter }

// ObjectToTyped implements managedfields.TypeConverter.
func (f fallible) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (value *typed.TypedValue, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			value, err = nil, fmt.Errorf("the object's fields cannot be read: %v", cause)
		}
	}()
	return f.TypeConverter.ObjectToTyped(obj, options...)
}
