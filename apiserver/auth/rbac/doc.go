// Package rbac judges requests by roles and bindings (rbac.authorization.k8s.io).
//
// It owns the index from users to their roles, made from the store's own decoded objects, the authorization of
// a request by the rules of those roles, and the check that a user grants only permissions that he has
// (Escalation, an admission plugin). What roles a cluster has from its beginning is in the package policy
// below.
//
// It is asked for what the fixed rules of apiserver/auth do not allow, and for all
// that a user may do, by reviews. It reads apiserver/storage.
//
// Promises: a decision takes no lock and makes no garbage, and its time depends on
// the roles of the user, not on how many there are. Changes are seen in the order
// in which they were made; CatchUp waits until those of the whole cluster are.
// Reasons and refusals are worded as upstream's, which people search for.
//
// It is tested with tables of rules and bindings, and the index against a plain
// walk over all of them in random worlds.
package rbac
