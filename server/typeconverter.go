package server

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

// lazyTypeConverter loads the schemas at the first write that needs them, not
// when the server starts.
type lazyTypeConverter struct {
	load sync.Once
	real managedfields.TypeConverter
	err  error
}

func (l *lazyTypeConverter) converter() (managedfields.TypeConverter, error) {
	l.load.Do(func() { l.real, l.err = discovery.TypeConverter() })
	return l.real, l.err
}

// ObjectToTyped implements managedfields.TypeConverter.
func (l *lazyTypeConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	c, err := l.converter()
	if err != nil {
		return nil, err
	}
	return c.ObjectToTyped(obj, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (l *lazyTypeConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	c, err := l.converter()
	if err != nil {
		return nil, err
	}
	return c.TypedToObject(value)
}
