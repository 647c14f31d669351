// Package operators tests an operator that others wrote, JobSet of Kubernetes' batch group, as its library in
// setpointtest: its controllers, CRD, RBAC rules and webhooks come from its module, unchanged. A cluster is started
// once and forked twice; the operator runs in one fork, and heals what the loss of a node does there.
//
// It also compiles the Go snippets of the pages (pages_test.go), types the five minutes of docs/go-test.md in an empty folder (typed_test.go), and
// plays a suite of Ginkgo (ginkgo_test.go), because here are the libraries that these use.
//
// It is a module of its own, so that the product carries none of JobSet's dependencies: `make operators`.
package operators
