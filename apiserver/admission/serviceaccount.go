package admission

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

const defaultServiceAccount = "default"

// serviceAccount gives every pod a service account. The token volume comes with
// service account tokens.
type serviceAccount struct{ onPodCreate }

// Admit implements admission.MutationInterface.
func (serviceAccount) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := newPod(a)
	if pod == nil || pod.Spec.ServiceAccountName != "" {
		return nil
	}
	pod.Spec.ServiceAccountName = defaultServiceAccount
	pod.Spec.DeprecatedServiceAccount = defaultServiceAccount
	return nil
}
