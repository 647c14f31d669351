package crd

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiserver/pkg/util/webhook"
)

// converters makes converters by the strategies that definitions name: None, which
// changes the apiVersion only, or a webhook. Webhook clients are shared by all.
type converters struct {
	factory *conversion.CRConverterFactory
}

func newConverters(services webhook.ServiceResolver, dialled webhook.AuthenticationInfoResolverWrapper) (*converters, error) {
	factory, err := conversion.NewCRConverterFactory(services, dialled)
	return &converters{factory}, err
}

func (c *converters) of(crd *apiextensionsv1.CustomResourceDefinition) (converter, error) {
	safe, unsafe, err := c.factory.NewConverter(crd)
	return converter{safe, unsafe}, err
}
