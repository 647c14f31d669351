// Package pinning gives containers CPUs of their own, memory of certain NUMA nodes, and all of a pod's resources from the same nodes:
// what a kubelet's CPU, memory and topology manager do together.
//
// It owns: who has what, in the files cpu_manager_state and memory_manager_state, which are a kubelet's; the order of an admission (hints,
// choice of nodes, devices, CPUs, memory); the CPUs on which running containers run; the metrics of all this. The decisions are those of
// agent/resources/topology and the packages below it; devices are given by agent/resources/devices, which it asks for hints. Drivers of
// ResourceClaims give no hints, as upstream.
//
// Promises: what a container has is on disk before it is made, and stays its own until nothing of its pod runs. When the shared CPUs
// change, running containers are moved at once; those that cannot be are tried again after ReconcileEvery. If a topology policy is set,
// pods are admitted one after the other, as by a kubelet: what one was promised another does not take.
//
// Tested on machines of files, with a runtime of the test, in bubbles; and in agent with real containers.
package pinning
