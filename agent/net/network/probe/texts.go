package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// portOfDNS is what pods ask first.
const portOfDNS = 53

// culprit is who blocks a way, and the command that ends it, with RANGE for that of pods; an empty command is not known.
type culprit struct{ who, command string }

// problemOf says what a finding means.
func problemOf(f finding, all rules, pods netip.Prefix) nodefirewall.Problem {
	p := nodefirewall.Problem{Input: f.input == blocked, Forwarding: f.forwarding == blocked}
	var says, commands []string
	add := func(what string, c culprit) {
		says = append(says, fmt.Sprintf("%s: %s, it seems", what, c.who))
		if c.command != "" && pods.IsValid() {
			commands = append(commands, strings.ReplaceAll(c.command, "RANGE", pods.String()))
		}
	}
	if p.Input {
		add(f.port.blocked(), all.blame(input))
	}
	if p.Forwarding {
		add("this machine does not forward packets of pods, so they reach neither pods of other nodes nor the outside", all.blame(forward))
	}
	p.What, p.Command = strings.Join(says, "; "), strings.Join(slices.Compact(commands), " && ")
	return p
}

// blocked says what a port means for pods.
func (t Target) blocked() string {
	means := "so they perhaps reach no other port of it either"
	if t.At.Port() == portOfDNS {
		means = "so they have no DNS of the cluster, and perhaps reach no API server and no node port here"
	}
	return fmt.Sprintf("this machine does not let packets of pods to its port %d/%s in, %s", t.At.Port(), t.Network, means)
}

// blame finds who blocks a hook: a chain that refuses what it does not know, else one that refuses something.
func (all rules) blame(h hook) culprit {
	if h == forward && all.noForwarding {
		return culprit{"net.ipv4.ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1"}
	}
	for _, suspicious := range []func(chain) bool{func(c chain) bool { return c.drops }, func(c chain) bool { return c.refuses }} {
		for _, c := range all.chains {
			if c.at == h && suspicious(c) && !c.accepts {
				return all.culprit(c)
			}
		}
	}
	if all.older {
		return culprit{"iptables of the older kind (iptables-legacy)", iptablesCommand("iptables-legacy", strings.ToUpper(h.String()))}
	}
	return culprit{who: "a rule of this machine that nftables does not show"}
}

// ofIPTables reports whether iptables has made the chain.
func (c chain) ofIPTables() bool {
	return c.family == "ip" && c.table == "filter" && c.name == strings.ToUpper(c.at.String())
}

func (all rules) culprit(c chain) culprit {
	ufw := slices.ContainsFunc(all.names, func(name string) bool { return strings.HasPrefix(name, "ufw-") })
	switch {
	case c.table == "firewalld":
		return culprit{"firewalld", "firewall-cmd --permanent --zone=trusted --add-source=RANGE && firewall-cmd --reload"}
	case c.ofIPTables() && c.at == input && ufw:
		return culprit{"ufw", "ufw allow from RANGE"}
	case c.ofIPTables():
		return culprit{"iptables, in its chain " + c.name, iptablesCommand("iptables", c.name)}
	}
	return culprit{fmt.Sprintf("nftables, in the chain %s of the table %s %s", c.name, c.family, c.table), c.accept()}
}

// iptablesCommand lets packets of pods pass a chain; what is forwarded to them too.
func iptablesCommand(command, chain string) string {
	from := command + " -I " + chain + " -s RANGE -j ACCEPT"
	if chain != "FORWARD" {
		return from
	}
	return from + " && " + command + " -I " + chain + " -d RANGE -j ACCEPT"
}

// accept lets packets of pods pass the chain.
func (c chain) accept() string {
	insert := fmt.Sprintf("nft insert rule %s %s %s ip ", c.family, c.table, c.name)
	if c.at == input {
		return insert + "saddr RANGE accept"
	}
	return insert + "saddr RANGE accept && " + insert + "daddr RANGE accept"
}
