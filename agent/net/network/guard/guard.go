package guard

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// Pod is whom the guard judges.
type Pod struct {
	// Interface is the host's end of the pod's, at most 15 bytes.
	Interface string
	// Addresses are those from which it may send: one of each family at most.
	Addresses []netip.Addr
}

// Guard are the tables of one bridge: what judges frames, and what keeps packets from the machine that come past the bridge. mu guards the
// rest: to is the hardware address to which pods send, and made says that the tables are in the kernel, with all pods.
type Guard struct {
	table, machine *nftables.Table
	mu             sync.Mutex
	to             net.HardwareAddr
	pods           map[string]Pod
	made           bool
}

// New changes nothing before Set.
func New(bridge string) *Guard {
	name := TableName(bridge)
	return &Guard{
		table:   &nftables.Table{Family: nftables.TableFamilyBridge, Name: name},
		machine: &nftables.Table{Family: nftables.TableFamilyINet, Name: name}, pods: map[string]Pod{},
	}
}

// TableName is that of the tables of a bridge.
func TableName(bridge string) string { return "setpoint-" + bridge + "-guard" }

// Adopt adds a pod that runs already. It is guarded from the next Set on.
func (g *Guard) Adopt(pod Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods[pod.Interface] = pod
}

// Set makes the table, with all pods, in place of whatever is there. to is the bridge's hardware address. After an error what was there is
// still in force, or the new one is if nobody knows ([nft.ErrOutcomeUnknown]); the next call makes it again.
func (g *Guard) Set(to net.HardwareAddr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = to
	return g.make()
}

// Add begins to judge what a pod sends, before it can send.
func (g *Guard) Add(pod Pod) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods[pod.Interface] = pod
	if g.made && g.change(pod, (*nft.Conn).SetAddElements) == nil {
		return nil
	}
	// It could not be made before, or somebody has removed it.
	if err := g.make(); err != nil {
		return fmt.Errorf("the frames that the pod sends cannot be judged: %w", err)
	}
	return nil
}

// Remove ends that. Doing it again is no error.
func (g *Guard) Remove(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	pod, known := g.pods[name]
	delete(g.pods, name)
	if !g.made || !known {
		return nil
	}
	if err := g.change(pod, (*nft.Conn).SetDeleteElements); err != nil && !errors.Is(err, os.ErrNotExist) {
		g.made = false // what is left of it goes when the table is made again
		return fmt.Errorf("nftables table %s: %w", g.table.Name, err)
	}
	return nil
}

// Delete removes the table.
func (g *Guard) Delete() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made = false
	return errors.Join(nft.DropTable(g.table.Family, g.table.Name), nft.DropTable(g.machine.Family, g.machine.Name))
}

// make replaces the table. mu is held.
func (g *Guard) make() error {
	g.made = false
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	conn.ReplaceTable(g.table)
	conn.ReplaceTable(g.machine)
	r := g.ruleset(conn)
	err = r.sets(slices.Collect(maps.Values(g.pods)))
	r.judge(g.to)
	if err := errors.Join(err, conn.Flush()); err != nil {
		return fmt.Errorf("nftables table %s: %w", g.table.Name, err)
	}
	g.made = true
	return nil
}

func (g *Guard) ruleset(conn *nft.Conn) *ruleset { return &ruleset{conn, g.table, g.machine} }

// elementChange adds elements to a set or deletes them.
type elementChange func(*nft.Conn, *nftables.Set, []nftables.SetElement) error

// change tells the kernel of one pod. mu is held.
func (g *Guard) change(pod Pod, change elementChange) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	r := g.ruleset(conn)
	for _, s := range r.all() {
		err = errors.Join(err, change(conn, s.set, s.elements([]Pod{pod})))
	}
	return errors.Join(err, conn.Flush())
}
