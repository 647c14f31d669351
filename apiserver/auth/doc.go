// Package auth says who a request comes from and what that user may do.
//
// It is called by the request chain of the API server and by the wiring, and calls
// only apiserver/auth/pki. Who: a client certificate that the TLS handshake has
// verified; without one, the anonymous user, and only on the health and version
// paths and where machines join. What: NewAuthorizer holds the fixed rules for the administrator, servers,
// nodes and everyone; anything no rule allows is left to the next authorizer, and
// NewAuthorizer's caller refuses it if there is none. Role based rules (RBAC) are
// such a next authorizer. NodeRestriction, an admission plugin, judges by the objects
// what nodes write.
//
// Decisions are functions of the request: no I/O except the lookup of a pod's node
// handed in by the wiring. They are tested with tables, over real TLS connections
// where certificates are concerned.
package auth
