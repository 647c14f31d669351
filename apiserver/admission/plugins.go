package admission

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

// New returns the chain of all plugins. A new plugin is one file and one line.
func New() admission.Interface {
	return chain{
		serviceAccount{},
		priority{},
		defaultTolerationSeconds{},
		auth.NodeRestriction{},
	}
}

// chain runs its plugins in order and stops at the first refusal.
type chain []admission.MutationInterface

var (
	_ admission.MutationInterface   = chain{}
	_ admission.ValidationInterface = chain{}
)

// Handles implements admission.Interface.
func (c chain) Handles(op admission.Operation) bool {
	for _, p := range c {
		if p.Handles(op) {
			return true
		}
	}
	return false
}

// Admit implements admission.MutationInterface.
func (c chain) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, p := range c {
		if !p.Handles(a.GetOperation()) {
			continue
		}
		if err := p.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (c chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, p := range c {
		v, ok := p.(admission.ValidationInterface)
		if !ok || !p.Handles(a.GetOperation()) {
			continue
		}
		if err := v.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}
