// Package podwarnings tells of what is accepted in pods and their templates but will not do what its author hopes: in upstream's words
// (k8s.io/kubernetes v1.37.2, pkg/api/pod/warnings.go) and order, and the fields that Setpoint's own agent does not honour.
//
// All functions are pure. Tested with tables, and beside upstream's API server with the manifests of other projects.
package podwarnings
