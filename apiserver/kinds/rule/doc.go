// Package rule judges and defaults single values: names, addresses, ports, keys,
// quantities, members of a set.
//
// It owns no state; the kinds and podspec call it, and it calls the published
// validation library only. Errors carry the field path they are handed and speak
// the words of Kubernetes. It is tested through the golden files and tables of
// the kinds that use it.
package rule
