// Package join lets a machine become a node with nothing but a token.
//
// The agent's side (Join, LoadOrJoin) makes a key, finds a server whose certificate
// authority has the hash in the token, and has a certificate request signed. The
// server's side (NewHandler) judges the token and signs. The wiring calls both: it
// mounts the handler at Path before authentication, since the token is the proof, and
// runs LoadOrJoin before it starts an agent. The package calls apiserver/auth/pki only.
//
// Promises: the token's secret is sent to no server that the pin does not vouch for;
// the node's key never leaves the machine; a certificate is for a node and nothing
// else, whatever the request asks for. Who holds a node token may join under any name
// that is not a server's, also a name in use: the token is the trust in the machine,
// and a machine that was installed anew must be able to come back.
//
// The tests run both sides over real TLS on loopback; clocks that differ are made by
// certificates issued in the past or future.
package join
