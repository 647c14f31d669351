// Package aggregation passes requests on to other API servers: those that APIServices
// with a service name for a version of a group.
//
// An Aggregator follows the table of APIServices. For each server behind one it keeps
// one pool of connections, and what that server says it offers, asked again every
// minute and whenever its APIService changes. Until the first APIService names a
// service nothing is built, and it costs nothing.
//
// Requests are passed on with the user's name in headers, which the other server trusts because of the front
// proxy's certificate. The request is authorized here and there. Redirects are not followed and not passed on.
// The addresses dialled are those of ready endpoints of the Service; the certificate there must be that of
// <service>.<namespace>.svc, signed by the APIService's bundle.
//
// Promises: an APIService that is not Available is answered 503 with the reason; a group stays in discovery
// while its server fails, marked stale, with what it last offered; an answer has one Audit-Id, this server's;
// a server without OpenAPI v3 has its v2 document as one, converted, under each of its group versions, as upstream's aggregator has it;
// core/v1 and apiregistration.k8s.io are never passed on, since the cluster could not be repaired without them.
//
// Before a replica says that there is no such resource it has read the newest APIServices.
//
// Package server makes an Aggregator, runs it (Run), hands it to the API (Handler), to discovery (Remotes) and
// to controllers/apiservice (Probe), which writes the condition Available. It is tested through apiserver, with
// a second HTTPS server.
package aggregation
