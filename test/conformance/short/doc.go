// Package short is a part of the upstream conformance suite that builds in a fraction of
// the time: the sigs whose cases of class A need only the API, without those that import
// the kubelet. `make test` runs it, as the ratchet that holds between two runs of all.
//
// It is called by run.sh (SUITE=short), which builds it as it does upstream's own. It owns
// no case. overlay.json leaves out one file of upstream's: etcd_failure.go, whose case
// restarts etcd by ssh, imports the kubelet.
package short
