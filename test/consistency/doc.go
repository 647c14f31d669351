// Package consistency examines the real thing, Jepsen-style: clients and watchers on all servers, a
// nemesis, and checkers that judge from outside what everybody was told.
//
// It owns the run: three acts (calm, faults, heal) on a cluster.Cluster, cut into epochs that are
// checked while the next one runs, so that memory stays bounded however long it lasts. A run
// with too little traffic in the calm act fails: nothing was examined. In the heal act every server
// must take a write and all must hold the same state within nemesis.SettleTimeout. What each fault cost clients is
// bounded (bounds.go). As root there are agents, too, and a pod on each, which must live through all of it.
//
// test/consistency.sh (`make consistency`) runs it long, with flags; `go test` runs a short form. A run
// that finds something keeps histories, logs and the command that repeats it.
// RECORD.md lists what was found and fixed. Its parts: history, workload, pods, nemesis, cluster, check.
package consistency
