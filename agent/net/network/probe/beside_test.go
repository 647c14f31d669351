package probe

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
)

// besideVariable says that the firewalls are installed, and may write where they do.
const besideVariable = "SETPOINT_BESIDE"

// firewall is one that people have. start and stop are commands.
type firewall struct {
	start, stop        string
	who                string
	blocksIn, blocksBy bool
}

const dropAll = "$T -P FORWARD DROP && $T -P INPUT DROP && $T -A INPUT -i lo -j ACCEPT && " +
	"$T -A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT"

var firewalls = map[string]firewall{
	"ufw":      {"ufw --force enable", "ufw --force disable", "ufw, it seems", true, false},
	"iptables": {"T=iptables; " + dropAll, "iptables -P INPUT ACCEPT", "iptables, in its chain INPUT", true, false},
	"iptables-legacy": {
		"T=iptables-legacy; " + dropAll,
		"iptables-legacy -P INPUT ACCEPT; iptables-legacy -P FORWARD ACCEPT; iptables-legacy -F", "(iptables-legacy)", true, true,
	},
	"firewalld": {
		"mkdir /run/dbus && dbus-daemon --system --fork && (firewalld --nofork --nopid >/run/log 2>&1 & echo $! >/run/pid) && " +
			"for i in $(seq 30); do firewall-cmd --state && exit 0; sleep 1; done; cat /run/log; exit 1",
		"kill $(cat /run/pid)", "firewalld, it seems", true, true,
	},
}

// TestBesideFirewalls that are installed: each is found, and what is told to the user ends it. test/beside runs it.
func TestBesideFirewalls(t *testing.T) {
	if os.Getenv(besideVariable) == "" {
		t.Skip("make beside runs it")
	}
	for name, f := range firewalls {
		t.Run(name, func(t *testing.T) {
			c := newNode(t, true)
			shell(t, f.start)
			defer shell(t, f.stop)
			check(t, iptables.Forward(bridgeOfTest).Accept(nftables.TableFamilyIPv4)) // as agent/net/network does
			p := c.problem(t)
			if p.Input != f.blocksIn || p.Forwarding != f.blocksBy || !strings.Contains(p.What, f.who) {
				t.Fatalf("found %+v", p)
			}
			shell(t, p.Command)
			if left := c.problem(t); left.Any() {
				t.Errorf("after %s: %+v", p.Command, left)
			}
		})
	}
}

func shell(t *testing.T, command string) {
	t.Helper()
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	t.Logf("%s: %v\n%s", command, err, out)
	check(t, err)
}
