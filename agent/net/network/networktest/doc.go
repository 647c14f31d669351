// Package networktest gives tests namespaces: those in which all tests of a package run, which are the node, and network namespaces at
// links of it.
//
// It owns what it makes, until the test ends. TestMain of a package whose tests are root's calls Enter or Main. It calls netlink.
//
// It promises: nothing of the machine's own network is changed. Tested by its callers.
package networktest
