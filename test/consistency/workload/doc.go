// Package workload is the clients of test/consistency: they read and write objects of one kind after the other through
// the Kubernetes API of all servers, and record what they asked and what they were told.
//
// It owns the mix of operations, the rule that says what a client may conclude from an answer
// (API.answer), the watchers that move between servers, and the epoch: one namespace with fresh
// keys, after which its history can be checked by itself and memory given back. An epoch has
// at most ClientsPerKey clients on a key and OpsPerKey operations, within what porcupine
// decides in a second. test/consistency runs epochs one after the other, under faults. Run
// returns when all clients and watchers have ended.
package workload
