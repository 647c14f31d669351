// Package records answers for the names of a cluster, as Kubernetes' specification of DNS-based service discovery (1.1.0) says.
//
// It owns: which records a name has, and whether a name without records exists (NODATA) or not (NXDOMAIN), on which the search paths
// of pods rely. It may call the types of the API and miekg/dns, and knows Services and EndpointSlices by a [View] only.
//
// Promises: it is pure: the same view gives the same records in the same order. Nothing is built in advance: a question costs what
// its own Service has. A name outside the zone is nobody's ([Zone.Answer] says so), and so is an address that no Service has.
//
// Tested with tables, and by fuzzing of names.
package records
