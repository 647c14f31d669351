// Package trust owns the keys and certificates of a cluster: its certificate authority, the certificates of
// servers, nodes and the administrator, the gossip key, the first join token and the files that hold them.
//
// It touches only the folder it is handed; times are arguments, so that expiry is tested without waiting.
//
// The certificate's subject says who its holder is, as Kubernetes reads it:
//
//	server         CN system:setpoint:server:<name>  O system:setpoint:servers
//	node           CN system:node:<name>             O system:nodes (as a client)
//	administrator  CN admin                          O system:masters
//
// A signature of the cluster's CA alone does not prove a role: code that accepts a replica's peer, or a server
// that calls an agent, checks the group too (RequireServer). Two further authorities are derived from the
// cluster's (derived.go): for front proxies, and for what nodes serve with, which only servers trust. CA has several
// authorities while it is replaced (AuthorityRing): the first signs, all are believed. Ring is a secret of
// which there are several values while it is replaced (the keys of service accounts). Live is
// an identity that is renewed while connections are made with it. Shared is what all servers of a cluster have, and
// what one that joins gets; its folder (Adopt) is there as a whole or not at all. Files with secrets have mode 0600
// and are replaced atomically.
package trust
