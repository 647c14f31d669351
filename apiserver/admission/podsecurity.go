package admission

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"
	podsecurity "k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// podSecurity holds pods to the standard that their namespace's labels name.
type podSecurity struct {
	onWrite
	delegate *podsecurity.Admission
}

// ValidatePodSecurity says what is wrong with the plugin's configuration.
func ValidatePodSecurity(text []byte) error {
	_, err := newPodSecurity(nil, text)
	return err
}

func newPodSecurity(store *storage.Store, text []byte) (podSecurity, error) {
	config, err := load.LoadFromData(text)
	if err != nil {
		return podSecurity{}, fmt.Errorf("admission plugin PodSecurity: %w", err)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return podSecurity{}, err
	}
	world := podSecurityWorld{
		namespaces: namespacesOf(store),
		pods:       objectsOf[*corev1.Pod](store, corev1.SchemeGroupVersion.WithResource("pods")),
	}
	delegate := &podsecurity.Admission{
		Configuration: config, Evaluator: evaluator, Metrics: noMetrics{},
		PodSpecExtractor: podsecurity.DefaultPodSpecExtractor{},
		NamespaceGetter:  world, PodLister: world,
	}
	if err := delegate.CompleteConfiguration(); err != nil {
		return podSecurity{}, err
	}
	return podSecurity{delegate: delegate}, delegate.ValidateConfiguration()
}

// Validate implements admission.ValidationInterface.
func (p podSecurity) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	gr := a.GetResource().GroupResource()
	if gr != podsResource && gr != namespacesResource && !p.delegate.PodSpecExtractor.HasPodSpec(gr) {
		return nil
	}
	response := p.delegate.Validate(ctx, podSecurityAttributes{a})
	for _, text := range response.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	for key, value := range response.AuditAnnotations {
		audit.AddAuditAnnotation(ctx, api.AuditAnnotationPrefix+key, value)
	}
	if response.Allowed {
		return nil
	}
	return podSecurityRefusal(a, response)
}

func podSecurityRefusal(a admission.Attributes, response *admissionv1.AdmissionResponse) error {
	//lint:ignore ST1005 upstream's words
	err := admission.NewForbidden(a, errors.New("Not allowed by PodSecurity"))
	var refusal *apierrors.StatusError
	if response.Result == nil || !errors.As(err, &refusal) {
		return err
	}
	status, result := &refusal.ErrStatus, response.Result
	if result.Message != "" {
		status.Message = result.Message
	}
	if result.Reason != "" {
		status.Reason = result.Reason
	}
	if result.Details != nil {
		status.Details = result.Details
	}
	if result.Code != 0 {
		status.Code = result.Code
	}
	return refusal
}

// podSecurityAttributes is a request in the library's form.
type podSecurityAttributes struct{ admission.Attributes }

// GetObject implements api.Attributes.
func (a podSecurityAttributes) GetObject() (runtime.Object, error) {
	return a.Attributes.GetObject(), nil
}

// GetOldObject implements api.Attributes.
func (a podSecurityAttributes) GetOldObject() (runtime.Object, error) {
	return a.Attributes.GetOldObject(), nil
}

// GetOperation implements api.Attributes.
func (a podSecurityAttributes) GetOperation() admissionv1.Operation {
	return admissionv1.Operation(a.Attributes.GetOperation())
}

// GetUserName implements api.Attributes.
func (a podSecurityAttributes) GetUserName() string {
	if a.GetUserInfo() == nil {
		return ""
	}
	return a.GetUserInfo().GetName()
}

// podSecurityWorld is what the library reads of the cluster.
type podSecurityWorld struct {
	namespaces objects[*corev1.Namespace]
	pods       objects[*corev1.Pod]
}

// GetNamespace implements podsecurity.NamespaceGetter.
func (w podSecurityWorld) GetNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace, found, err := w.namespaces.get(ctx, "", name)
	if err == nil && !found {
		err = apierrors.NewNotFound(namespacesResource, name)
	}
	return namespace, err
}

func namespacesOf(store *storage.Store) objects[*corev1.Namespace] {
	return objectsOf[*corev1.Namespace](store, corev1.SchemeGroupVersion.WithResource("namespaces"))
}

// Namespaces reads a namespace as plugins do: it answers NotFound only after it has asked the whole cluster.
func Namespaces(store *storage.Store) func(ctx context.Context, name string) (*corev1.Namespace, error) {
	return podSecurityWorld{namespaces: namespacesOf(store)}.GetNamespace
}

// ListPods implements podsecurity.PodLister.
func (w podSecurityWorld) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	return w.pods.in(ctx, namespace)
}

// noMetrics: a refusal is an answer to its client, and the audit log has the rest.
type noMetrics struct{}

func (noMetrics) RecordEvaluation(metrics.Decision, api.LevelVersion, metrics.Mode, api.Attributes) {}
func (noMetrics) RecordExemption(api.Attributes)                                                    {}
func (noMetrics) RecordError(bool, api.Attributes)                                                  {}
