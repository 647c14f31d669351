package rotations

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestServersAloneWrite: not even an administrator does, in whatever way.
func TestServersAloneWrite(t *testing.T) {
	object := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	ours := object(metav1.NamespaceSystem, rotation.ConfigMapName)
	for name, c := range map[string]struct {
		op           admission.Operation
		is, old      runtime.Object
		resourceName string
		resource     string
		group        string
		refused      bool
	}{
		"created":               {admission.Create, ours, nil, "", "configmaps", trust.GroupMasters, true},
		"updated":               {admission.Update, ours, ours, ours.Name, "configmaps", trust.GroupMasters, true},
		"deleted":               {admission.Delete, nil, ours, ours.Name, "configmaps", trust.GroupMasters, true},
		"of a collection":       {admission.Delete, nil, ours, "", "configmaps", trust.GroupMasters, true},
		"deleted, by its name":  {admission.Delete, nil, nil, ours.Name, "configmaps", trust.GroupMasters, true},
		"by a server":           {admission.Update, ours, ours, ours.Name, "configmaps", trust.GroupServers, false},
		"another":               {admission.Create, object(metav1.NamespaceSystem, "x"), nil, "", "configmaps", trust.GroupMasters, false},
		"of another namespace":  {admission.Create, object("x", ours.Name), nil, "", "configmaps", trust.GroupMasters, false},
		"a Secret of that name": {admission.Update, ours, ours, ours.Name, "secrets", trust.GroupMasters, false},
	} {
		namespace := metav1.NamespaceSystem
		if named, ok := c.is.(metav1.Object); ok {
			namespace = named.GetNamespace()
		}
		err := Plugin{}.Validate(t.Context(), admission.NewAttributesRecord(
			c.is, c.old, corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespace, c.resourceName, corev1.SchemeGroupVersion.WithResource(c.resource),
			"", c.op, nil, false, &user.DefaultInfo{Name: "somebody", Groups: []string{c.group}},
		), nil)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
