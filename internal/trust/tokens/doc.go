// Package tokens is the text of the tokens with which machines join a cluster.
//
// It owns what such a text says and how one is made and read: the role, the pin by which the machine knows the cluster, and the
// secret. What the cluster knows of a token is in internal/trust/jointoken.
//
// Promises: what comes from outside is bounded and checked, and a Token that is printed hides its secret.
//
// Tested here, and by a fuzz target in internal/trust.
package tokens
