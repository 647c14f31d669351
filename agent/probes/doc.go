// Package probes asks running containers whether they are started, alive and ready.
//
// It owns: one goroutine for each probe of each running container of one pod.
// Called by: agent/pods; each pod worker holds a Set. It may call: the runtime's
// ExecSync, and the pod's address.
//
// Promises: the first probe runs as soon as the container is up and its initial
// delay is over, and again soon while a server is still starting; a result counts after the threshold of equal ones in a row, and
// Changed is called when it does; liveness and readiness wait for the startup
// probe. A probe that ran more than a period late, because the machine or the
// agent was paused, gives no verdict: nobody is killed for our own absence.
// Close returns after the last goroutine.
//
// Tested in synctest bubbles with a table of thresholds, and over loopback for
// the protocols.
package probes
