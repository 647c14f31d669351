// Package revocations is the admission plugin that guards the list of what is revoked (internal/revocation).
//
// It owns the rules for writing that ConfigMap: who may, what an entry is, and that nobody shuts out himself or servers that the cluster
// needs. It asks the authorizer that it is handed, and whoever knows the members. Every other object passes.
//
// Tested with a table.
package revocations
