// Package rbac owns the kinds of rbac.authorization.k8s.io/v1: Role, ClusterRole and
// their bindings.
//
// apiserver/kinds lists them. It may call what its siblings may (see there), and promises what they do: pure
// functions, defaults that settle at once, the messages of Kubernetes. It judges one object by itself;
// apiserver/auth decides who may grant what, and what a rule allows. Its cases lie in testdata.
package rbac
