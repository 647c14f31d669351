package crd

import (
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/util/webhook"
)

// converters makes converters by the strategies that definitions name: None, which
// changes the apiVersion only, or a webhook. Webhook clients are shared by all.
type converters struct {
	factory *conversion.CRConverterFactory
}

// converter changes the version of objects.
type converter struct {
	// safe copies what it converts, unsafe may change it.
	safe, unsafe runtime.ObjectConvertor
}

func newConverters(services webhook.ServiceResolver, dialled webhook.AuthenticationInfoResolverWrapper) (*converters, error) {
	factory, err := conversion.NewCRConverterFactory(services, dialled)
	return &converters{factory}, err
}

// of returns the converter of a definition. The client of a webhook is made for the
// first object that it must convert: one that cannot be made, such as with a caBundle
// that is no certificate, fails no other request.
func (c *converters) of(crd *apiextensionsv1.CustomResourceDefinition) (converter, error) {
	if crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return c.make(crd)
	}
	plain := crd.DeepCopy()
	plain.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	local, err := c.make(plain)
	remote := sync.OnceValues(func() (converter, error) { return c.make(crd) })
	return converter{
		safe: lazy{local.safe, func() (runtime.ObjectConvertor, error) {
			made, err := remote()
			return made.safe, err
		}},
		unsafe: lazy{local.unsafe, func() (runtime.ObjectConvertor, error) {
			made, err := remote()
			return made.unsafe, err
		}},
	}, err
}

func (c *converters) make(crd *apiextensionsv1.CustomResourceDefinition) (converter, error) {
	safe, unsafe, err := c.factory.NewConverter(crd)
	return converter{safe, unsafe}, err
}

// lazy asks the webhook only for objects of another version than the wanted one.
type lazy struct {
	// ObjectConvertor serves all others.
	runtime.ObjectConvertor
	webhook func() (runtime.ObjectConvertor, error)
}

// Convert implements runtime.ObjectConvertor.
func (l lazy) Convert(in, out, context any) error {
	from, isObject := in.(runtime.Object)
	to, intoObject := out.(*unstructured.Unstructured)
	if !isObject || !intoObject || !needsConversion(from, to.GroupVersionKind().GroupVersion()) {
		return l.ObjectConvertor.Convert(in, out, context)
	}
	real, err := l.webhook()
	if err != nil {
		return err
	}
	return real.Convert(in, out, context)
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (l lazy) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if !ok || !needsConversion(in, gvk.GroupVersion()) {
		return l.ObjectConvertor.ConvertToVersion(in, target)
	}
	real, err := l.webhook()
	if err != nil {
		return nil, err
	}
	return real.ConvertToVersion(in, target)
}

// needsConversion reports whether an object, or an item of a list, has another version.
func needsConversion(in runtime.Object, gv schema.GroupVersion) bool {
	switch in := in.(type) {
	case *unstructured.Unstructured:
		return in.GetAPIVersion() != gv.String()
	case *unstructured.UnstructuredList:
		return slices.ContainsFunc(in.Items, func(item unstructured.Unstructured) bool { return item.GetAPIVersion() != gv.String() })
	default:
		return false // a Scale, say, which no webhook knows
	}
}
