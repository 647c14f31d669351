// Package probe finds out, with packets of its own, whether this machine lets pods have what they need of it, whatever software forbids
// it: ufw, firewalld, Docker, or rules that somebody wrote.
//
// It owns two network namespaces without names, for as long as a probe takes. One hangs on the pods' bridge as a pod does, with an address
// that no pod has meanwhile. It asks the cluster's DNS on this machine by UDP and TCP, as pods do (the way in), and sends a datagram to
// the other namespace, which is outside of the cluster, and waits for the answer (the way through). It owns the two interfaces
// [PodInterface] and [OutsideInterface] of the machine too.
//
// A [Watch] tells its problems in a condition and in events; the network lends it addresses ([Place]) and takes away what is left
// ([Remove]). It may call netlink and nftables, reading the latter only: it changes no rules.
//
// Promises: a way is told as blocked only where the machine itself gets the answer that pods do not get, so a DNS that is down is no
// firewall. A probe ends within [timeMax], and leaves nothing behind; what a killed agent leaves the kernel takes away, as the namespaces
// have no names, and [Remove] does. It runs at the start, then within [restTime] and [settleTime] of a change of nftables, and every
// [lookInterval].
//
// It cannot see: rules for other ports than those of the DNS, or for single addresses of pods or of the outside; IPv6; firewalls beyond
// this machine. Rules of iptables' older kind it meets, but the kernel does not tell when they change. Rules that let pods out by the name
// of the machine's outer interface alone do not let the probe out, whose outside is at another one. Who forbids is a guess by the chains
// of nftables, since no rule says which one has dropped a packet.
//
// Probes are tested between network namespaces beside rules that drop, the loop in a bubble, the texts as tables;
// `make beside` tries real firewalls.
package probe
