package expiry

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// withBundles are the resources whose objects name authorities.
var withBundles = []schema.GroupVersionResource{
	apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"),
	admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"),
	admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"),
	apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"),
}

// bundles are when the bundles of all objects end, as this replica knows them; of an object with several, the one that ends first.
func bundles(store *storage.Store) (all []trust.Expiry) {
	for _, gvr := range withBundles {
		if !store.Serves(gvr) {
			continue
		}
		page, err := store.Table(gvr).List(context.Background(), storage.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue // it is not there yet
		}
		for _, item := range page.Items {
			object := item.Object()
			if end := firstEnd(bundlesOf(object)); !end.IsZero() {
				name := strings.TrimSuffix(gvr.Resource, "s") + "/" + object.GetName()
				all = append(all, trust.Expiry{Kind: trust.KindBundle, Name: name, Expires: end})
			}
		}
	}
	return all
}

// bundlesOf are those in an object, in PEM.
func bundlesOf(object resource.Object) (found [][]byte) {
	switch o := object.(type) {
	case *apiregistrationv1.APIService:
		found = append(found, o.Spec.CABundle)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			found = append(found, o.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			found = append(found, o.Webhooks[i].ClientConfig.CABundle)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			found = append(found, c.Webhook.ClientConfig.CABundle)
		}
	}
	return found
}

// firstEnd is when the first of the bundles ends; zero if none has a certificate. Webhooks of one object mostly have the same one.
func firstEnd(bundles [][]byte) (first time.Time) {
	for i, bundle := range bundles {
		if i > 0 && bytes.Equal(bundle, bundles[i-1]) {
			continue
		}
		if end := lastEnd(bundle); !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// lastEnd is when the last certificate of a bundle ends; zero if it has none that can be read.
func lastEnd(bundle []byte) (last time.Time) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	return last
}
