// Package clusterobjects keeps objects that every cluster has: the system's priority classes, upstream's flow
// schemas and their priority levels, the ServiceCIDR, the definitions of the Gateway API, the ConfigMap that tells
// aggregated API servers which CAs to trust, and the one that says since when the last use of legacy tokens is recorded.
//
// Package server says which objects these are.
//
// Reads and writes: PriorityClasses, FlowSchemas, PriorityLevelConfigurations, the
// ServiceCIDR called kubernetes and its status, CustomResourceDefinitions, the ConfigMaps
// kube-system/extension-apiserver-authentication and
// kube-system/kube-apiserver-legacy-service-account-token-tracking. Owns: those that it is told, by name.
//
// It promises: what somebody deleted is back within interval; what an administrator changed stays, as
// upstream's annotation apf.kubernetes.io/autoupdate-spec says; a definition that somebody installed stays, and one that was made here
// follows the server's version upwards; nothing is written when nothing has changed.
//
// Tests run over client-go's fake clientset, the whole controller in a synctest bubble.
package clusterobjects
