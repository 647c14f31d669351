// Package storage keeps objects of the API in the replicated log: keys, the
// stored form, resource versions, lists, pages, watches and the loop that turns
// a wanted change into a transaction.
//
// It is the one way from objects to raftstore: it is called with objects, and plain
// errors of the Kubernetes API come back. (Package server opens the store and asks it
// who leads and who is a member.)
//
// Promises:
//   - A record is decoded once on each replica; every reader shares that object,
//     so what is handed out must be copied before it is changed.
//   - resourceVersion is the store's revision. A list is one cut at the revision
//     it names; a watch is ordered, without repeats or gaps, and a bookmark never
//     runs ahead of an event that was not sent.
//   - Each object is encoded once for each content type, for all its readers; a
//     List is written from these bytes.
//   - What an Encryption names is encrypted before it is proposed and decrypted when a
//     record is decoded; what cannot be decrypted is never written over.
//   - Write computes a refusal or a no-op again on a linearizable root before it returns it, so no request is
//     refused because this replica lags.
//
// It is tested against raftstore/raftstoretest.Local and through apiserver, where every test ends with
// CheckShared, which fails if a shared object was changed.
package storage
