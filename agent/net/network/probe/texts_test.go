package probe

import (
	"net/netip"
	"strings"
	"testing"
)

// TestWhoForbidsAndWhatCuresIt.
func TestWhoForbidsAndWhatCuresIt(t *testing.T) {
	pods := netip.MustParsePrefix("10.42.0.0/16")
	dns := Target{Network: "udp", At: netip.MustParseAddrPort("10.96.0.10:53")}
	inputOf := func(drops bool) chain {
		return chain{family: "ip", table: "filter", name: "INPUT", at: input, drops: drops, refuses: !drops}
	}
	ofFirewalld := chain{family: "inet", table: "firewalld", name: "filter_INPUT", at: input, refuses: true}
	forwardOf := chain{family: "ip", table: "filter", name: "FORWARD", at: forward, drops: true, accepts: true}
	ownForward := chain{family: "inet", table: "filter", name: "forward", at: forward, drops: true}
	in, through := finding{input: blocked, port: dns}, finding{forwarding: blocked}
	for name, c := range map[string]struct {
		found     finding
		rules     rules
		who, cure string
	}{
		"ufw": {in, rules{chains: []chain{inputOf(true), forwardOf}, names: []string{"ufw-user-input"}}, "ufw", "ufw allow from 10.42.0.0/16"},
		"iptables": {in, rules{chains: []chain{inputOf(false)}}, "iptables, in its chain INPUT",
			"iptables -I INPUT -s 10.42.0.0/16 -j ACCEPT"},
		"firewalld": {in, rules{chains: []chain{ofFirewalld}}, "firewalld",
			"firewall-cmd --permanent --zone=trusted --add-source=10.42.0.0/16 && firewall-cmd --reload"},
		"a policy that drops comes before a rule that does": {in, rules{chains: []chain{
			{family: "inet", table: "bans", name: "input", at: input, refuses: true},
			{family: "inet", table: "filter", name: "input", at: input, drops: true},
		}}, "nftables, in the chain input of the table inet filter", "nft insert rule inet filter input ip saddr 10.42.0.0/16 accept"},
		"Docker lets pods pass by our rules, so another one forbids": {through, rules{chains: []chain{forwardOf, ownForward}},
			"in the chain forward of the table inet filter", "nft insert rule inet filter forward ip saddr 10.42.0.0/16 accept && " +
				"nft insert rule inet filter forward ip daddr 10.42.0.0/16 accept"},
		"Docker without our rules": {through, rules{chains: []chain{{family: "ip", table: "filter", name: "FORWARD", at: forward, drops: true}}},
			"iptables, in its chain FORWARD", "iptables -I FORWARD -s 10.42.0.0/16 -j ACCEPT && iptables -I FORWARD -d 10.42.0.0/16 -j ACCEPT"},
		"Docker with the older iptables": {through, rules{older: true}, "iptables of the older kind (iptables-legacy)",
			"iptables-legacy -I FORWARD -s 10.42.0.0/16 -j ACCEPT && iptables-legacy -I FORWARD -d 10.42.0.0/16 -j ACCEPT"},
		"the kernel's setting": {through, rules{noForwarding: true, chains: []chain{ownForward}}, "ip_forward is 0",
			"sysctl -w net.ipv4.ip_forward=1"},
		"nobody is found": {in, rules{chains: []chain{ownForward}}, "a rule of this machine that nftables does not show", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := problemOf(c.found, c.rules, pods)
			if !strings.Contains(p.What, c.who+", it seems") || p.Command != c.cure {
				t.Errorf("%+v", p)
			}
			if p.Input != strings.Contains(p.What, "port 53/udp") || p.Forwarding != strings.Contains(p.What, "pods of other nodes") {
				t.Errorf("the way: %+v", p)
			}
			if unknown := problemOf(c.found, c.rules, netip.Prefix{}); strings.Contains(unknown.Command, "RANGE") {
				t.Errorf("without a range: %+v", unknown)
			}
		})
	}
	both := problemOf(finding{input: blocked, forwarding: blocked, port: dns}, rules{chains: []chain{inputOf(true), ownForward}}, pods)
	if strings.Count(both.What, "; ") != 1 || strings.Count(both.Command, " && ") != 2 {
		t.Errorf("%+v", both)
	}
	if p := problemOf(finding{input: passes, forwarding: passes}, rules{}, pods); p.Any() || p.What+p.Command != "" {
		t.Errorf("%+v", p)
	}
}

// TestAQuestionIsDNS, byte for byte.
func TestAQuestionIsDNS(t *testing.T) {
	want := "\x53\x50\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01"
	if got := string(questionFor("cluster.local.")); got != want {
		t.Errorf("%q", got)
	}
}
