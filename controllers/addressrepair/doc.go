// Package addressrepair keeps IPAddresses and the addresses of Services the same, as the repair loop of upstream's API server does
// (pkg/registry/core/service/ipallocator/controller).
//
// The API writes a Service and its IPAddress in one transaction (apiserver/rest/addresses), so there is something to repair only when
// somebody has written or deleted an IPAddress by hand, or when a backup of another cluster was restored.
//
// Reads: Services, IPAddresses, ServiceCIDRs. Writes: IPAddresses that are managed by ipallocator.k8s.io, or named by the address of
// a Service (create, delete), events on both. Owns no field.
//
// It promises: what the caches say is looked up at the API before something is created or deleted; an IPAddress without a Service
// stays for a minute, as upstream's; one that something else manages stays unless a Service has its address; nothing is written
// when nothing has changed.
//
// Tests: tables in synctest bubbles, and a scenario of the sweep of faults over its writes (package controllers).
package addressrepair
