// Package auth authenticates requests and authorizes them.
//
// Authentication: a client certificate that the TLS handshake has verified, or a bearer token (the packages
// below); without both, the anonymous user. Authorization: NewAuthorizer holds the fixed rules for the
// administrator, servers and nodes, and leaves the rest to the next authorizer, which is apiserver/auth/rbac. A
// node may read what the pods bound to it use, and if it serves Ingresses their certificates: Workloads knows. Package
// admission judges by the objects what nodes write.
//
// Decisions read what this replica knows and do no I/O; only a refusal waits, a
// bounded time, until the replica has caught up, and judges again. They are tested
// with tables, over real TLS connections where certificates are concerned.
package auth
