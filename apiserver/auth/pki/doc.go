// Package pki owns the trust of a cluster: its certificate authority, the
// certificates of servers, nodes and the administrator, the gossip key, the join
// tokens and the files that hold them.
//
// It is called by the wiring (cmd and the root package), by apiserver/auth and by
// apiserver/auth/join, and calls nothing of ours. It touches only the folder it is
// handed; times are arguments, so that expiry is tested without waiting.
//
// Who somebody is stands in the certificate's subject, as Kubernetes reads it:
//
//	server         CN system:setpoint:server:<name>  O setpoint:servers
//	node           CN system:node:<name>             O system:nodes
//	administrator  CN admin                          O system:masters
//
// A certificate "signed by our CA" proves nothing by itself: whoever accepts a peer
// of the replicas, or a server calling an agent, checks the group too
// (RequireServer). Files with secrets have mode 0600 and are replaced atomically.
package pki
