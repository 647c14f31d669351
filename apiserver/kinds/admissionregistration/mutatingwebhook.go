package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type mutatingConfiguration = admissionregistrationv1.MutatingWebhookConfiguration

func mutatingWebhooks() resource.Kind[*mutatingConfiguration] {
	return resource.Kind[*mutatingConfiguration]{
		GroupVersionKind:       admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		Plural:                 "mutatingwebhookconfigurations",
		Categories:             []string{category},
		ClusterScoped:          true,
		New:                    func() *mutatingConfiguration { return &mutatingConfiguration{} },
		NewList:                func() runtime.Object { return &admissionregistrationv1.MutatingWebhookConfigurationList{} },
		Default:                defaultMutatingWebhooks,
		Validate:               validateMutatingWebhooks,
		ValidateUpdate:         validateMutatingWebhooksUpdate,
		Warnings:               func(c *mutatingConfiguration) []string { return hookWarnings(shared(c.Webhooks)) },
		Spec:                   func(c *mutatingConfiguration) any { return &c.Webhooks },
		Generation:             true,
		RequireResourceVersion: true,
		Columns:                hookColumns(func(c *mutatingConfiguration) int { return len(c.Webhooks) }),
	}
}

func defaultMutatingWebhooks(c *mutatingConfiguration) {
	for i := range c.Webhooks {
		h := &c.Webhooks[i]
		s := sharedPart(h)
		defaultHook(&s)
		h.FailurePolicy, h.MatchPolicy, h.TimeoutSeconds = s.FailurePolicy, s.MatchPolicy, s.TimeoutSeconds
		h.NamespaceSelector, h.ObjectSelector = s.NamespaceSelector, s.ObjectSelector
		rule.DefaultPointer(&h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	}
}

// sharedPart is the part of a mutating webhook that validating ones have too; what
// hangs below it is the same memory.
func sharedPart(h *admissionregistrationv1.MutatingWebhook) hook {
	return hook{
		Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules,
		FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
		NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector,
		SideEffects: h.SideEffects, TimeoutSeconds: h.TimeoutSeconds,
		AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions,
	}
}

func shared(hooks []admissionregistrationv1.MutatingWebhook) []hook {
	parts := make([]hook, len(hooks))
	for i := range hooks {
		parts[i] = sharedPart(&hooks[i])
	}
	return parts
}

func validateMutatingWebhooks(c *mutatingConfiguration) field.ErrorList {
	errs := validateHooks(shared(c.Webhooks), leniency{})
	errs = append(errs, validateReinvocations(c)...)
	return append(errs, validateNewName(c.Name)...)
}

func validateMutatingWebhooksUpdate(c, old *mutatingConfiguration) field.ErrorList {
	hooks := shared(c.Webhooks)
	return append(validateHooks(hooks, lenient(hooks, shared(old.Webhooks))), validateReinvocations(c)...)
}

func validateReinvocations(c *mutatingConfiguration) field.ErrorList {
	var errs field.ErrorList
	for i := range c.Webhooks {
		errs = append(
			errs,
			rule.OptionalOneOf(
				c.Webhooks[i].ReinvocationPolicy,
				reinvocations,
				field.NewPath("webhooks").Index(i).Child("reinvocationPolicy"),
			)...)
	}
	return errs
}
