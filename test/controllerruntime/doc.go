// Package controllerruntime runs controller-runtime's own suites, those for its envtest, in two ways: unchanged with this
// repository's binary as etcd and kube-apiserver, and in process with one import changed to setpointtest/envtest.
//
// Their source is that of the module cache; nothing of it is copied here. RESULTS.md has what passes, and explains what
// does not: a failure that is not explained fails the test. It is a module of its own, so that the product carries none of
// the suites' dependencies: `make envtest-suites`.
package controllerruntime
