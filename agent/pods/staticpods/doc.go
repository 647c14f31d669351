// Package staticpods runs the pods whose manifests lie in a folder of this node, and shows them to the cluster.
//
// It owns: what is read from the folder, and the mirror pods, which are objects of the API that show static pods and change
// nothing about them. It may call: agent/pods, through the interface in Config, and client-go.
//
// How it works: every round it reads the folder, compares it with what runs and with the mirror pods that the API has, asks
// plan, a pure function, what to do, and does it. A pod whose manifest changed ends before the new one starts. Names, uids,
// annotations and tolerations are as a kubelet makes them.
//
// Promises: static pods need no API server, but those without the host's network wait for the node's range of addresses after
// the machine has started. A manifest that is wrong is told in the log once, and the pod that it described before ends. Static
// pods refer to no objects of the API, as upstream, and get no variables of Services.
//
// Decisions are tested with tables, the rounds in a synctest bubble, the rest by a script with real containers.
package staticpods
