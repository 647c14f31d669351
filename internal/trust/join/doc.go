// Package join lets a machine become a node with nothing but a token, and a node have its
// certificates renewed.
//
// The agent's side (Open) takes what the data directory holds, or finds a server whose certificate authority
// has the hash in the token, and has the machine's key certified (Join). Membership.Run renews: it shows the
// certificate that the node holds instead of a token (Renew). The server's side (NewHandler) judges the proof
// and the name (Names), and signs. agent/host calls the one and package server the other: it mounts the handler
// at Path before authentication, and says which tokens there are. The package calls internal/trust and the API,
// for Nodes.
//
// Promises: the token's secret is sent only to a server whose CA has the hash in the token; the node's key
// never leaves the machine; certificates are for a node and nothing else, whatever the request asks for: one to
// call servers with, without a name that could be called, and one to serve with, of an authority that only
// servers trust. A name belongs to the key that first joined under it, until its Node is deleted: a token alone
// gets a new name, never one of a node that exists, and only so many.
//
// A server joins in the same way with a token of another kind (Server, NewServerHandler), and gets the files that all servers share: the
// keys of the cluster. They are sent over TLS alone, to who holds a token for servers and asks under a name that nobody has, and are
// neither logged nor bigger than trust.SharedBytesMax.
//
// The tests run both sides over real TLS on loopback; clocks that differ are made by
// certificates issued in the past or future.
package join
