// Package leftovers finds and ends the pods of a data directory whose runtime is not open, also if somebody has removed
// the directory.
//
// It owns nothing while a runtime runs; agent/reset calls it. It calls cgroup, agent/base/machine and agent/net/network, and knows
// of the runtime's data directory where records lie and what they call a pod.
//
// Promises: [Find] changes nothing; neither touches pods of other data directories, nor those of a container of this
// machine that calls its directory the same; doing it again finds nothing. Both need root.
//
// Tested with real pods in package embedded.
package leftovers
