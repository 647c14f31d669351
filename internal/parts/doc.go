// Package parts names the pods under which the parts of each server are seen in kube-system.
//
// It owns the names, labels and annotations of these pods, and the judgement whether a pod is one of them (Of). The loop
// server/serverpods keeps the pods, controllers/podgc leaves them alone, apiserver/rest leads their logs to the server that they
// are of, and server/parts serves these logs. It calls nothing of this project.
//
// It promises: the names are those of kubeadm's static pods, so that `kubectl logs -l component=kube-scheduler` finds them. The names
// of their nodes end in NodeDomain: a server is not a node, and an agent of the same machine, which may be called like the server,
// must not take these pods for its own.
//
// Tested with tables.
package parts
