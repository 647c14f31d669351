// Package rest serves the verbs of the Kubernetes API for every kind: create,
// get, list, watch, update, patch, apply, delete, deletecollection and the
// subresources.
//
// The wire (negotiation, patch formats, server-side apply, tables, framing) is
// upstream's exported request handlers; this package gives them a storage of our
// own, one Store for each kind, made from the kind's description. The most common
// reads and writes (fastget.go, plain.go, fastcreate.go, fastupdate.go) do without
// them and answer with the same bytes. It judges what
// a write may do to an object (strategy.go, create.go, update.go, delete.go) and
// leaves when and whether it happens to apiserver/storage.
//
// apiserver builds one Endpoints from the list of kinds and routes requests to it. The package knows neither
// raftstore nor the network: logs, exec and port-forward reach a node through the Kubelets interface, which
// server/peers implements, and the logs of servers' parts through Servers (server/parts). It is tested
// through apiserver, by requests as clients send them, against an in-memory log.
package rest
