package rotations

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}

	errServers = errors.New("how far the rotations of keys are is written by servers alone: run 'setpoint rotate'")
)

// Plugin guards the ConfigMap.
type Plugin struct{}

// Name is what its time is measured under.
func (Plugin) Name() string { return "Rotations" }

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool { return op != admission.Connect }

// Validate implements admission.ValidationInterface.
func (Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isGuarded(a) || slices.Contains(a.GetUserInfo().GetGroups(), trust.GroupServers) {
		return nil
	}
	return admission.NewForbidden(a, errServers)
}

// isGuarded reports whether a request is about the ConfigMap. One of a collection that is deleted names it by the object alone, and the
// request of a create may carry no name.
func isGuarded(a admission.Attributes) bool {
	if a.GetResource().GroupResource() != configMaps || a.GetNamespace() != metav1.NamespaceSystem {
		return false
	}
	object := a.GetObject()
	if a.GetOperation() == admission.Delete {
		object = a.GetOldObject()
	}
	if named, ok := object.(metav1.Object); ok && named.GetName() != "" {
		return named.GetName() == rotation.ConfigMapName
	}
	return a.GetName() == rotation.ConfigMapName
}
