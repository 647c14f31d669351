// Package crd serves custom resources: what CustomResourceDefinitions define.
//
// A Catalog answers for every definition from this replica's own table. Nothing is
// built before the first request of a version, and what was built is thrown away
// when its definition changes: handlers come from apiserver/rest, with the published
// functions of k8s.io/apiextensions-apiserver for schemas, defaults, pruning, CEL
// rules and conversion. Its server, registry and handlers are not used.
//
// Promises:
//   - Whoever has seen a definition Established, on any replica, is served on every
//     replica: before a replica says that there is no such kind it asks for the
//     newest state of the cluster.
//   - A write is judged by the definition that is in force when it is applied: the
//     definition is a precondition of the transaction. Nothing is created once the
//     definition is being deleted.
//   - A definition that nobody uses costs its record and its decoded object.
//
// The order on a write is: decode, prune or refuse unknown fields, default, admission,
// prune what that added, validate against the schema, CEL rules, convert to the storage
// version, store. On a read: prune and default as the version says under which it was
// kept, convert, prune.
//
// The wiring makes a Catalog, hands it to the server (Handler), to discovery (Kinds)
// and runs it (Run). Names and conditions are judged by controllers/crd, which is a
// client. It is tested by tables here and through the real chain in apiserver.
package crd
