// Package crd serves custom resources: what CustomResourceDefinitions define.
//
// A Catalog answers for every definition from this replica's own table. Nothing is
// built before the first request of a version, and what was built is thrown away
// when its definition changes: handlers come from apiserver/rest, with the published
// functions of k8s.io/apiextensions-apiserver for schemas, defaults, pruning, CEL
// rules and conversion. Its server, registry and handlers are not used.
//
// Promises:
//   - A client that has seen a definition Established on one replica is served by every replica: before a
//     replica answers that there is no such kind it reads the newest state of the cluster.
//   - A write is judged by the definition that is in force when it is applied: the
//     definition is a precondition of the transaction. Nothing is created once the
//     definition is being deleted.
//   - An unused definition costs only its record and its decoded object.
//
// The order on a write is: decode, prune or refuse unknown fields, default, admission,
// prune what that added, validate against the schema, CEL rules, convert to the storage
// version, store. On a read: prune and default as the version says under which it was
// kept, convert, prune.
//
// Package server makes a Catalog, hands it to the API (Handler), to discovery (Kinds) and runs it (Run). Names
// and conditions are judged by controllers/crdstatus, which is a client. It is tested by tables here and through the
// real chain in apiserver.
package crd
