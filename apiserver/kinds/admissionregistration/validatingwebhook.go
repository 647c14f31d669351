package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type validatingConfiguration = admissionregistrationv1.ValidatingWebhookConfiguration

func validatingWebhooks() resource.Kind[*validatingConfiguration] {
	return resource.Kind[*validatingConfiguration]{
		GroupVersionKind:       admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		Plural:                 "validatingwebhookconfigurations",
		Categories:             []string{category},
		ClusterScoped:          true,
		New:                    func() *validatingConfiguration { return &validatingConfiguration{} },
		NewList:                func() runtime.Object { return &admissionregistrationv1.ValidatingWebhookConfigurationList{} },
		Default:                defaultValidatingWebhooks,
		Validate:               validateValidatingWebhooks,
		ValidateUpdate:         validateValidatingWebhooksUpdate,
		Warnings:               func(c *validatingConfiguration) []string { return hookWarnings(c.Webhooks) },
		Spec:                   func(c *validatingConfiguration) any { return &c.Webhooks },
		Generation:             true,
		RequireResourceVersion: true,
		Columns:                hookColumns(func(c *validatingConfiguration) int { return len(c.Webhooks) }),
	}
}

func hookColumns[T resource.Object](count func(T) int) []resource.Column[T] {
	return []resource.Column[T]{
		column.Name[T](),
		column.Int(
			"Webhooks",
			"Webhooks indicates the number of webhooks registered in this configuration",
			func(c T) int64 { return int64(count(c)) },
		),
		column.Age[T](),
	}
}

func defaultValidatingWebhooks(c *validatingConfiguration) {
	for i := range c.Webhooks {
		defaultHook(&c.Webhooks[i])
	}
}

func validateValidatingWebhooks(c *validatingConfiguration) field.ErrorList {
	return append(validateHooks(c.Webhooks, leniency{}), validateNewName(c.Name)...)
}

func validateValidatingWebhooksUpdate(c, old *validatingConfiguration) field.ErrorList {
	return validateHooks(c.Webhooks, lenient(c.Webhooks, old.Webhooks))
}
