// Package admissionregistration owns the kinds of admissionregistration.k8s.io/v1:
// webhook configurations, and admission policies with their bindings.
//
// apiserver/kinds lists them; apiserver/admission runs them. It may call what its
// siblings may, and the published CEL compiler: an expression that could not run is
// refused when it is written, not when it is needed. What an object has already had
// stays valid in an update, also where a later release of the language refuses it.
//
// It promises what its siblings do: pure functions, defaults that settle at once, the
// messages of Kubernetes. Its cases lie in testdata.
package admissionregistration
