// Package ipfamily has the two versions of IP: where packets have their addresses, how nftables calls them, what addresses a
// range has, and the matches of rules that several packages make.
//
// agent/net/network with its packages, agent/net/policy and agent/net/hostfirewall make their rules by it, and agent/net/policy/plan its
// blocks. It calls nothing.
//
// It promises: it is pure. Tested as tables; the rules that are made by it meet real packets in the tests of those packages.
package ipfamily
