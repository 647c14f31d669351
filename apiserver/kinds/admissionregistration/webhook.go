package admissionregistration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// What both kinds of webhooks share. A mutating webhook is judged as the validating
// one with the same fields (see shared); it has one field more.

const (
	defaultTimeoutSeconds = 10
	timeoutSecondsMax     = 30
	defaultServicePort    = 443
)

var (
	sideEffects = []admissionregistrationv1.SideEffectClass{
		admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun,
		admissionregistrationv1.SideEffectClassSome, admissionregistrationv1.SideEffectClassUnknown,
	}
	noSideEffects = sideEffects[:2]
	// reviewVersions are the versions of AdmissionReview that servers have known.
	reviewVersions = []string{"v1", "v1beta1"}
	// transient are resources that are answered and not stored; webhooks are not asked
	// about them, since they could then decide who may repair the cluster.
	transient = []schema.GroupResource{
		{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
		{Group: "authentication.k8s.io", Resource: "tokenreviews"},
		{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
		{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
		{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
		{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	}
)

type hook = admissionregistrationv1.ValidatingWebhook

func defaultHook(h *hook) {
	rule.DefaultPointer(&h.FailurePolicy, admissionregistrationv1.Fail)
	defaultMatching(&h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector)
	rule.DefaultPointer(&h.TimeoutSeconds, defaultTimeoutSeconds)
	if h.ClientConfig.Service != nil {
		rule.DefaultPointer(&h.ClientConfig.Service.Port, defaultServicePort)
	}
	for i := range h.Rules {
		defaultRule(&h.Rules[i].Rule)
	}
}

// leniency is what an update may keep because the stored object has it.
type leniency struct {
	sideEffects, reviewVersions, names, labels, conditions bool
	expressions                                            map[string]bool
}

// lenient finds what stored webhooks have that new ones may not have.
func lenient(hooks, old []hook) leniency {
	l := leniency{conditions: sameConditions(hooks, old), expressions: map[string]bool{}}
	names := map[string]bool{}
	for i := range old {
		h := &old[i]
		l.sideEffects = l.sideEffects || h.SideEffects == nil || !slices.Contains(noSideEffects, *h.SideEffects)
		l.reviewVersions = l.reviewVersions ||
			len(h.AdmissionReviewVersions) > 0 && !slices.ContainsFunc(h.AdmissionReviewVersions, knownReview)
		l.labels = l.labels || len(validateSelectors(h, false, nil)) > 0
		l.names = l.names || names[h.Name]
		names[h.Name] = true
		storeConditions(l.expressions, h.MatchConditions)
	}
	return l
}

func knownReview(version string) bool { return slices.Contains(reviewVersions, version) }

func sameConditions(hooks, old []hook) bool {
	return slices.EqualFunc(hooks, old, func(a, b hook) bool { return reflect.DeepEqual(a.MatchConditions, b.MatchConditions) })
}

func validateHooks(hooks []hook, may leniency) field.ErrorList {
	var errs field.ErrorList
	path, names := field.NewPath("webhooks"), map[string]bool{}
	for i := range hooks {
		h, at := &hooks[i], path.Index(i)
		errs = append(errs, validateHook(h, may, at)...)
		errs = append(errs, validateReviewVersions(h.AdmissionReviewVersions, may.reviewVersions, at.Child("admissionReviewVersions"))...)
		if !may.names && h.Name != "" && names[h.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), h.Name))
		}
		names[h.Name] = true
	}
	return errs
}

func validateHook(h *hook, may leniency, path *field.Path) field.ErrorList {
	errs := utilvalidation.IsFullyQualifiedName(path.Child("name"), h.Name)
	for i := range h.Rules {
		errs = append(errs, validateRule(&h.Rules[i], path.Child("rules").Index(i))...)
	}
	errs = append(errs, rule.OptionalOneOf(h.FailurePolicy, failurePolicies, path.Child("failurePolicy"))...)
	errs = append(errs, rule.OptionalOneOf(h.MatchPolicy, matchPolicies, path.Child("matchPolicy"))...)
	errs = append(errs, validateSideEffects(h.SideEffects, may.sideEffects, path.Child("sideEffects"))...)
	if t := h.TimeoutSeconds; t != nil && (*t < 1 || *t > timeoutSecondsMax) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *t, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, validateSelectors(h, may.labels, path)...)
	errs = append(errs, validateClient(&h.ClientConfig, path.Child("clientConfig"))...)
	if may.conditions {
		return errs
	}
	return append(errs, validateMatchConditions(h.MatchConditions, false, may.expressions, path.Child("matchConditions"))...)
}

func validateSideEffects(class *admissionregistrationv1.SideEffectClass, any bool, path *field.Path) field.ErrorList {
	allowed := noSideEffects
	if any {
		allowed = sideEffects
	}
	if class != nil {
		return rule.OneOf(*class, allowed, path)
	}
	names := make([]string, len(allowed))
	for i := range allowed {
		names[i] = string(allowed[i])
	}
	return field.ErrorList{field.Required(path, "must specify one of "+strings.Join(names, ", "))}
}

func validateSelectors(h *hook, badLabels bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.NamespaceSelector != nil {
		errs = append(errs, validateSelector(h.NamespaceSelector, badLabels, path.Child("namespaceSelector"))...)
	}
	if h.ObjectSelector != nil {
		errs = append(errs, validateSelector(h.ObjectSelector, badLabels, path.Child("objectSelector"))...)
	}
	return errs
}

func validateClient(client *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch service := client.Service; {
	case (client.URL == nil) == (service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case service == nil:
		return webhook.ValidateWebhookURL(path.Child("url"), *client.URL, true)
	default:
		port := int32(defaultServicePort)
		if service.Port != nil {
			port = *service.Port
		}
		return webhook.ValidateWebhookService(path.Child("service"), service.Namespace, service.Name, service.Path, port)
	}
}

func validateReviewVersions(versions []string, any bool, path *field.Path) field.ErrorList {
	known := strings.Join(reviewVersions, ", ")
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of "+known)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, version := range versions {
		if seen[version] {
			errs = append(errs, field.Invalid(path.Index(i), version, "duplicate version"))
			continue
		}
		seen[version] = true
		errs = append(errs, rule.Invalid(version, utilvalidation.IsDNS1035Label(version), path.Index(i))...)
	}
	if !any && !slices.ContainsFunc(versions, knownReview) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+known))
	}
	return errs
}

// hookWarnings tells of rules that will never match, once for each resource.
func hookWarnings(hooks []hook) []string {
	var warnings []string
	for i := range hooks {
		for j := range hooks[i].Rules {
			path := field.NewPath("webhooks").Index(i).Child("rules").Index(j)
			for _, named := range transientIn(&hooks[i].Rules[j].Rule) {
				warnings = append(
					warnings,
					fmt.Sprintf("%s: %s is excluded from admission webhooks; this rule will have no effect", path, named),
				)
			}
		}
	}
	return warnings
}

// transientIn returns the transient resources that a rule names. With a wildcard it
// may well mean others.
func transientIn(r *admissionregistrationv1.Rule) []schema.GroupResource {
	if slices.Contains(r.APIGroups, everything) || slices.Contains(r.Resources, everything) {
		return nil
	}
	var named []schema.GroupResource
	for _, group := range r.APIGroups {
		for _, name := range r.Resources {
			gr := schema.GroupResource{Group: group, Resource: name}
			if slices.Contains(transient, gr) && !slices.Contains(named, gr) {
				named = append(named, gr)
			}
		}
	}
	return named
}
