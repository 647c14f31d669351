// Package serverpods keeps the pods under which the parts of each server are seen in kube-system: kube-apiserver, kube-controller-manager,
// kube-scheduler, and the store in etcd's place.
//
// It is run by server/term, once for each leadership term and with the server's own client, as upstream's kubelets and not upstream's
// controllers keep such pods. It calls client-go, reconcile and internal/parts. Where only the API is wanted it does not run, and there
// are no such pods.
//
// Reads: Pods, and from every server how its parts are. Writes: the pods of servers (create, delete, status).
// Owns: these pods, whole.
//
// It promises: each member of the log has its pods, and nobody else; one that is deleted comes back; a part is Ready if its server says
// so, and not Ready once its server has not answered for silenceMax, which is noticed within one more interval;
// the condition Leading tells on which server the loops act, as they are elected (the Leases say it too); nothing is written when
// nothing has changed.
//
// The pods are stored and not made up by each server for its answers: a list and a watch are both views of one revision of the store,
// and what is in no revision could be in neither. They are mirror pods of a node that does not exist (internal/parts), so no scheduler
// places them, no agent runs or removes them, and drain and eviction by taints pass them by; podgc leaves them to this loop. They ask
// for no resources, have no owner, and are deleted without grace, since nobody would confirm the end.
//
// Tests: in synctest bubbles over client-go's fake clientset, with made-up servers.
package serverpods
