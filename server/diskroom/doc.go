// Package diskroom reports the free space of a server's disk: the check "disk" of /readyz, and metrics.
//
// Package server calls it with the store's status. It may import apiserver/discovery. Its tests are pure.
package diskroom
