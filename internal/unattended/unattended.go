// Package unattended says which fields of a Service lead nowhere, although the API accepts them, so that users are told.
//
// It owns the judgement of a Service; podfields does the same for pods. The API adds what it says as a warning to the answer of a
// create (apiserver/rest), and controllers/unattended writes it as an event on the Service. The two worlds meet in it, so it imports
// nothing but the types of the API.
//
// It promises: it is pure, and each text fits into a Warning header (120 characters). Of kinds nothing is listed: somebody acts on
// each one that is served.
package unattended

import corev1 "k8s.io/api/core/v1"

// Reason is the reason of the events.
const Reason = "NobodyActs"

// Service says what of a Service leads nowhere.
func Service(s *corev1.Service) []string {
	switch mode := s.Annotations[corev1.AnnotationTopologyMode]; mode {
	case "", "Disabled", "disabled":
		return nil
	}
	return []string{corev1.AnnotationTopologyMode + ": nobody acts on this annotation: use spec.trafficDistribution"}
}
