package main

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// judge completes and judges Sites, in webhooks.
type judge struct{}

// Default implements admission.Defaulter.
func (judge) Default(_ context.Context, s *Site) error {
	if s.Spec.Text == "" {
		s.Spec.Text = "hello from " + s.Name
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (judge) ValidateCreate(_ context.Context, s *Site) (admission.Warnings, error) {
	if s.Spec.Text == "rude" {
		return nil, errors.New("no rude texts")
	}
	if s.Spec.Replicas == 0 {
		return admission.Warnings{"a site without replicas serves nobody"}, nil
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (j judge) ValidateUpdate(ctx context.Context, _, s *Site) (admission.Warnings, error) {
	return j.ValidateCreate(ctx, s)
}

// ValidateDelete implements admission.Validator.
func (judge) ValidateDelete(_ context.Context, s *Site) (admission.Warnings, error) {
	if s.Annotations["keep"] != "" {
		return nil, errors.New("this site is kept")
	}
	return nil, nil
}
