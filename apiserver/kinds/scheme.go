package kinds

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/core"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// NewScheme returns a scheme of its own that knows the Go types of all served
// groups, with the defaults and the field labels of the kinds in All. It is not
// the global scheme of client-go: what is registered here must not change how
// clients in the same binary behave.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	addTypes(scheme)
	for _, kind := range All() {
		addDefaults(scheme, kind)
		addFieldLabels(scheme, kind)
	}
	utilruntime.Must(core.AddPodOptions(scheme))
	return scheme
}

// addTypes registers whole published groups: the served kinds, and the kinds of
// their subresources (Scale, Eviction, TokenRequest, Binding, Pod*Options), whose
// groups need not have served kinds; and kinds that are computed, not stored.
func addTypes(scheme *runtime.Scheme) {
	for _, g := range groups() {
		utilruntime.Must(g.addTypes(scheme))
	}
	for _, add := range []func(*runtime.Scheme) error{
		autoscalingv1.AddToScheme,
		authenticationv1.AddToScheme,
		authorizationv1.AddToScheme,
		metricsv1beta1.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	// Clients older than policy/v1 send Evictions of a version that is not served otherwise. Its type has the same fields.
	scheme.AddKnownTypeWithName(policyv1beta1.SchemeGroupVersion.WithKind("Eviction"), &policyv1.Eviction{})
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
}

func addDefaults(scheme *runtime.Scheme, kind *resource.Any) {
	if kind.Default == nil {
		return
	}
	scheme.AddTypeDefaultingFunc(kind.New(), func(obj any) { kind.Default(obj.(resource.Object)) })
}

// addFieldLabels tells the scheme which field selectors a kind understands.
// Upstream's handlers ask it before they look at any object.
func addFieldLabels(scheme *runtime.Scheme, kind *resource.Any) {
	if kind.Fields == nil {
		utilruntime.Must(scheme.AddFieldLabelConversionFunc(kind.GroupVersionKind, runtime.DefaultMetaV1FieldSelectorConversion))
		return
	}
	labels := selectableFields(kind)
	utilruntime.Must(scheme.AddFieldLabelConversionFunc(kind.GroupVersionKind,
		func(label, value string) (string, string, error) {
			if !labels.Has(label) {
				return "", "", unsupportedLabel(kind.GroupVersionKind, label)
			}
			return label, value, nil
		}))
}

// unsupportedLabel says it in upstream's words, which differ between kinds.
func unsupportedLabel(gvk schema.GroupVersionKind, label string) error {
	switch gvk.Kind {
	case "Job":
		return fmt.Errorf("field label %q not supported for Job", label)
	case "ResourceSlice":
		return fmt.Errorf("field label not supported for %s: %s", gvk, label)
	default:
		return fmt.Errorf("field label not supported: %s", label)
	}
}

// selectableFields returns the field labels of a kind, with empty values for the
// kind's own: every object yields the same names, so an empty one is asked.
func selectableFields(kind *resource.Any) fields.Set {
	labels := fields.Set{"metadata.name": ""}
	// Upstream selects no PodCertificateRequests by their namespace.
	if kind.Namespaced() && kind.GroupVersionKind.Kind != "PodCertificateRequest" {
		labels["metadata.namespace"] = ""
	}
	if kind.Fields == nil {
		return labels
	}
	for label := range kind.Fields(kind.New()) {
		labels[label] = ""
	}
	return labels
}
