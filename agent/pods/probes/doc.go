// Package probes asks running containers whether they are started, alive and ready.
//
// It owns: one goroutine for each probe of each running container of one pod. Each pod worker holds a Set. It
// may call: the runtime's ExecSync, and the pod's address.
//
// Promises: the first probe runs as soon as the container is up and its initial delay is over (liveness: not
// within its first second), and again soon until one succeeds; no failure counts or is reported within the
// container's first second, nor one of the probes between the regular ones; a result counts after the threshold
// of equal ones in a row, and Changed is called when it does; liveness and readiness wait for the startup
// probe. A probe that ran more than a period late, because the machine or the agent was paused, gives no
// verdict, so no container is killed because the agent was paused. Close returns after the last goroutine.
//
// Tested in synctest bubbles with a table of thresholds, and over loopback for
// the protocols.
package probes
