// Package envtest tests an operator made with controller-runtime in setpointtest, outside a bubble, in a bubble and
// under faults; and controller-runtime's own envtest with this repository's binary as etcd and kube-apiserver.
// The program in manifests compares what is answered to the manifests of other projects with upstream: `make manifests`.
//
// It is a module of its own, so that the product carries none of controller-runtime's dependencies: `make envtest`.
package envtest
