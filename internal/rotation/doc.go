// Package rotation says how a key of the cluster is replaced while everything runs: what was ordered, how far it is, and what comes next.
//
// It owns the Kinds, the phases, the State in the form in which it is stored (the ConfigMap ConfigMapName in kube-system, one key for each
// kind), and the Plan, a function of the state and of what the members say they hold. The new key is trusted everywhere (Trust), then used
// (Use), then the old one is dropped (Drop); each phase ends only when every member has said so. An abort is the same way back: From and
// To change places.
//
// The state is in the replicated store, so that a leader that dies, servers that were away and backups keep it. The keys stand beside it,
// sealed with a key that only servers have (trust.Locker), together with all that the state says: who may write ConfigMaps can neither
// read nor change it; an older state that somebody puts back is followed. Servers follow it, and their leader acts on it
// (server/rotations); apiserver/admission/rotations guards it.
//
// Of the certificate authority nodes are members too: whoever would miss it could not come back (Unsure). Before the old one is dropped all
// states are sealed anew (Relock).
//
// Tested with tables: each phase with members that are away, that are too old, and with aborts.
package rotation
