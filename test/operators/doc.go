// Package operators tests an operator that others wrote, JobSet of Kubernetes' batch group, as its library in
// setpointtest: its controllers, CRD, RBAC rules and webhooks come from its module, unchanged. A cluster is started
// once and forked twice; the operator runs in one fork, and heals what the loss of a node does there.
//
// It is a module of its own, so that the product carries none of JobSet's dependencies: `make operators`.
package operators
