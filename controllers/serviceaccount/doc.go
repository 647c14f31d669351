// Package serviceaccount owns the ServiceAccount "default" of every namespace,
// without which no pod is admitted there.
//
// Reads: Namespaces, ServiceAccounts. Writes: ServiceAccounts (create).
// Owns: the existence of the ServiceAccount, none of its fields.
//
// It promises: a namespace that is not being deleted has the account as soon as the namespace's event is
// handled, again after someone deleted it; nothing is written when nothing has changed.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package serviceaccount
