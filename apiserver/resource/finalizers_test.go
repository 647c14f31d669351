package resource_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func TestFinalizersHaveADomain(t *testing.T) {
	configMap := &resource.Kind[*corev1.ConfigMap]{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps"}
	lease := &resource.Kind[*corev1.ConfigMap]{GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, Plural: "leases"}
	custom := &resource.Kind[*corev1.ConfigMap]{Schema: func(bool) (*spec.Schema, error) { return nil, nil }}
	for _, c := range []struct {
		name     string
		kind     *resource.Kind[*corev1.ConfigMap]
		has, had []string
		errors   int
	}{
		{"domain", configMap, []string{"a.b/c"}, nil, 0},
		{"standard", configMap, []string{"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}, nil, 0},
		{"none", configMap, []string{"a.b/c", "x", "y"}, nil, 2},
		{"had before", configMap, []string{"x", "y"}, []string{"x"}, 1},
		{"lease", lease, []string{"x"}, nil, 0},
		{"custom", custom, []string{"x"}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj, old := &metav1.ObjectMeta{Finalizers: c.has}, &metav1.ObjectMeta{Finalizers: c.had}
			if errs := c.kind.ValidateFinalizers(obj, old); len(errs) != c.errors {
				t.Error(errs)
			}
		})
	}
}
