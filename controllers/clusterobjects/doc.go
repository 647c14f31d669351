// Package clusterobjects keeps what every cluster has beside its namespaces and the
// API's own Service: the system's priority classes, upstream's flow schemas and their
// levels, the range of Services' addresses, and whom servers behind this one believe.
//
// It is called by package controllers, once for each leadership term, and calls
// client-go and reconcile. What there has to be is told by the wiring: it knows the
// API server, this package does not.
//
// Reads and writes: PriorityClasses, FlowSchemas, PriorityLevelConfigurations, the
// ServiceCIDR called kubernetes and its status, the ConfigMap
// kube-system/extension-apiserver-authentication. Owns: those that it is told, by name.
//
// It promises: what somebody deleted is back within interval; what an administrator
// changed stays, as upstream's annotation apf.kubernetes.io/autoupdate-spec says; on an
// unchanged world nothing is written.
//
// Tests run over client-go's fake clientset, the whole controller in a synctest bubble.
package clusterobjects
