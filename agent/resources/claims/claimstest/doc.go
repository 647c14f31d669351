// Package claimstest is the kubelet plugin of a DRA driver for tests: it speaks v1 or v1beta1 on a socket, prepares what the test says,
// and remembers what it was asked. Nothing but tests imports it.
package claimstest
