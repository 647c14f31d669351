// Package servicerange says which addresses of the range of Services are the cluster's own: the first is that of the API, the
// tenth that of DNS, as upstream.
//
// Called by: whoever gives these addresses out, keeps them free, serves or asks at them, in servers and agents alike. It may
// call: nothing.
//
// Promises: of a range that Validate takes, both addresses are in it. Tables test it.
package servicerange
