// Package servicecidr keeps the ServiceCIDRs, the ranges that Services get their addresses from: each is Ready, and none goes while
// a Service has an address that no other range holds.
//
// The API draws addresses from the ranges that are ready (apiserver/rest/addresses); package clusterobjects makes the cluster's own.
//
// Reads: ServiceCIDRs, the names of IPAddresses in the garbage collector's monitors and, while a range is being deleted, a list of the
// metadata of IPAddresses. Writes: ServiceCIDRs (patch) and their status
// (apply). Owns: the finalizer networking.k8s.io/service-cidr-finalizer and the condition Ready.
//
// It promises: a range has the finalizer before it is ready. One that is deleted goes when other ranges contain all of it, or hold all
// addresses that it has given, but not within the first deletionGrace; until then Ready is false and says why. Nothing is written when
// nothing has changed, and a Service that comes or goes costs nothing while no range is being deleted.
//
// Tests: the plan as a table; the whole controller in synctest bubbles; with the API's allocator in the root package.
package servicecidr
