// Package iptables lets packets of pods pass the chain FORWARD of iptables, which others make and may make drop.
//
// It owns two rules of a bridge in that chain, of each family, where there is one; it makes no chain. agent/net/network calls it, and
// agent/net/network/probe knows our rules by it. It calls nftables only, so chains of iptables' older kind are not seen.
//
// It promises: the rules are there once, and iptables can list them. Tested by agent/net/network, in a network namespace with pods.
package iptables
