// Package whatif is `setpoint what-if`: what would happen to a cluster if.
//
// It owns the question, the fork, what is done to it, how long it is looked at, and the answer. The fork runs in the process of the
// command: a backup of the cluster, which only administrators may read and which is one moment of it, becomes a cluster in memory
// (setpoint.ReadBackup). So what a fork costs in memory and processor is paid by who asks and not by a server, two that ask at once
// hinder nobody but for what a backup costs, whose number the server bounds, and an error in it reaches no workload.
//
// Promises: the cluster is read and never written to. Of Secrets names and types are read where they are encrypted, which is what they
// are in a backup unless --encryption-provider-config says otherwise; their values are dropped as they arrive. Whatever the fork would
// call outside (webhooks, aggregated servers, webhooks for conversion, nodes) is left out of the copy, and the answer names it; what a
// manifest brings of these is refused its connection. A fork is bounded: forkBytesMax of objects at its beginning, --for of its time,
// workMax of real time.
//
// Tested beside clusters with simulated nodes, to which the same is done for real; see reality_test.go.
package whatif
