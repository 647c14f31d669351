// Package servicerange reads the ranges of Services, one of IPv4 and maybe one of IPv6, and says which addresses of a range are the
// cluster's own: the first is that of the API, the tenth that of DNS, as upstream.
//
// It may call: nothing.
//
// Promises: of a range that Validate takes, both addresses are in it. Tables test it.
package servicerange
