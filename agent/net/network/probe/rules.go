package probe

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// hook is where packets of a way are judged.
type hook int

const (
	input hook = iota
	forward
)

func (h hook) String() string { return []string{"input", "forward"}[h] }

func (h hook) number() nftables.ChainHook {
	return []nftables.ChainHook{*nftables.ChainHookInput, *nftables.ChainHookForward}[h]
}

// chain is one of another software that judges packets of IPv4 at a hook.
type chain struct {
	family, table, name string
	at                  hook
	// drops says that it drops or rejects what no other rule of it lets pass, refuses that it does so with some packets.
	drops, refuses bool
	// accepts says that it has our rules, which let the pods' packets pass.
	accepts bool
}

// rules are what is known of those of other software.
type rules struct {
	chains []chain
	// names are those of all its chains.
	names []string
	// older says that there are rules of iptables' older kind, which nftables does not list.
	older bool
	// noForwarding says that the kernel forwards nothing.
	noForwarding bool
}

// families are those in which packets of IPv4 are judged, as nft names them.
var families = map[nftables.TableFamily]string{nftables.TableFamilyIPv4: "ip", nftables.TableFamilyINet: "inet"}

// ownTables is how the names of our tables begin.
const ownTables = "setpoint-"

// readRules reads what there is; what cannot be read is not known.
func readRules() (all rules) {
	forwarding, _ := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	all.noForwarding = bytes.HasPrefix(forwarding, []byte("0"))
	older, _ := os.ReadFile("/proc/net/ip_tables_names")
	all.older = slices.Contains(strings.Fields(string(older)), "filter")
	conn, err := nft.Open()
	if err != nil {
		return all
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyINet} {
		chains, _ := conn.ListChainsOfTableFamily(family)
		for _, c := range chains {
			if !strings.HasPrefix(c.Table.Name, ownTables) {
				all.add(conn, family, c)
			}
		}
	}
	return all
}

func (all *rules) add(conn *nft.Conn, family nftables.TableFamily, c *nftables.Chain) {
	all.names = append(all.names, c.Name)
	for _, h := range []hook{input, forward} {
		if c.Hooknum == nil || *c.Hooknum != h.number() {
			continue
		}
		found := chain{family: families[family], table: c.Table.Name, name: c.Name, at: h}
		has, _ := conn.GetRules(&nftables.Table{Family: family, Name: c.Table.Name}, c)
		found.drops = c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop || slices.ContainsFunc(has, refusesAll)
		found.refuses, found.accepts = slices.ContainsFunc(has, refuses), slices.ContainsFunc(has, iptables.IsOwn)
		all.chains = append(all.chains, found)
	}
}

// refuses reports whether a rule drops or rejects some packets, as nft or iptables writes it.
func refuses(r *nftables.Rule) bool { return slices.ContainsFunc(r.Exprs, isRefusal) }

// refusesAll reports whether a rule does so without asking anything of the packet, as the last rule of many chains.
func refusesAll(r *nftables.Rule) bool {
	return refuses(r) && !slices.ContainsFunc(r.Exprs, func(e expr.Any) bool {
		_, counts := e.(*expr.Counter)
		_, logs := e.(*expr.Log)
		return !counts && !logs && !isRefusal(e)
	})
}

func isRefusal(e expr.Any) bool {
	switch e := e.(type) {
	case *expr.Verdict:
		return e.Kind == expr.VerdictDrop
	case *expr.Target:
		return e.Name == "REJECT"
	case *expr.Reject:
		return true
	}
	return false
}
