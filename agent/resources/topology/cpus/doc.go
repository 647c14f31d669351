// Package cpus decides which CPUs a container has for itself, as a kubelet's CPU manager does with its policy static
// (https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies).
//
// It owns: where the CPUs of a machine stand (read from the files of /sys), the choice among those that are free (take.go,
// distribute.go), the options of the policy, who has which CPUs, and the form of that in a file. The caller keeps the file.
//
// Promises: no lock, no clock, and no I/O but reading the files that it is handed. The same state gives the same CPUs. A CPU is one
// pod's at a time, and never both somebody's and in the shared pool; reserved CPUs are nobody's.
//
// Tested with machines and pods by chance, judged by these properties, and in test/differential against upstream's policy.
package cpus
