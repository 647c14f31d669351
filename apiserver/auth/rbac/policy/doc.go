// Package policy has the default roles and bindings of a cluster, those that
// Kubernetes promises.
//
// It owns two tables, Roles and Bindings, of upstream's names and grants, and
// Reconcile, by which a leader makes them at its start. What an administrator has
// added to them stays; what is missing comes back, unless he has annotated the
// object with rbac.authorization.kubernetes.io/autoupdate: "false".
//
// It runs once for each term. It writes nothing when nothing is missing.
//
// It is tested on its own tables, and against a server in apiserver.
package policy
