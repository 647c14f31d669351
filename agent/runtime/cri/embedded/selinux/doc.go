// Package selinux says which SELinux labels the processes and the files of a container have.
//
// It owns the levels of pods: which are in use, until their last container is gone (selinux.go), and gives volumes the label of a
// container that may use them (relabel.go). The runtime calls it when it makes a pod or a container, and once for each that it
// finds when it starts; the container's own process takes its label on, in package boot. The agent asks it with which label a CSI driver
// is to mount a volume. Labels are read, written and checked by
// github.com/opencontainers/selinux; of the module it calls agent/base/machine only.
//
// It promises: where the machine labels containers, every pod has a level that no other pod has been given, and its containers share
// it unless they name another. A label that is not the policy's is refused when the pod or container is made, with the reason; so
// is one on a kernel with SELinux whose policy is not for containers. On a kernel without, nothing has a label. Tested with functions
// in place of the kernel's, and with a policy of our own by `make vm LSM=selinux`.
package selinux
