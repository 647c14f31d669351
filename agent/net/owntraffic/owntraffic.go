package owntraffic

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

const (
	// lookInterval is how often names of servers are resolved, and what the network refused is told again.
	lookInterval = 10 * time.Second
	// resolveTimeout bounds the questions for one name: an agent starts without an answer, too.
	resolveTimeout = 2 * time.Second
)

// Port is one at which each node is reached. Protocol is IANA's number.
type Port struct {
	Protocol uint8
	Number   uint16
}

// TCP is a port of that protocol.
func TCP(number int) Port { return Port{unix.IPPROTO_TCP, uint16(number)} }

// UDP is a port of that protocol.
func UDP(number int) Port { return Port{unix.IPPROTO_UDP, uint16(number)} }

// Config of a Keeper; all fields are required.
type Config struct {
	// Servers are "host:port", as the agent's flags have them.
	Servers []string
	// Ports are those of each node: of its agent, its gossip, its tunnels.
	Ports []Port
	// Tell hands the whole list on.
	Tell func([]network.ServiceAddress) error
	// Resolve returns the addresses of a name; net.DefaultResolver's LookupNetIP with "ip" is one.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Logger  *slog.Logger
}

// Keeper keeps the list. Its methods may be called at any time, and return before the network knows, but for Look.
type Keeper struct {
	Config
	changed chan struct{}
	// telling is held while the network is told, so that an older list never follows a newer one; mu guards what is below, and comes after.
	telling sync.Mutex
	mu      sync.Mutex
	named   map[string][]netip.AddrPort // by the flag
	servers []netip.AddrPort            // as the API says
	gossip  []netip.AddrPort            // of servers, as they say
	nodes   []netip.Addr
	told    []network.ServiceAddress
	known   bool // told is what the network has
}

// New makes a Keeper that has told nothing.
func New(c Config) *Keeper {
	return &Keeper{Config: c, changed: make(chan struct{}, 1), named: map[string][]netip.AddrPort{}}
}

// Nodes sets the addresses of the other nodes.
func (k *Keeper) Nodes(all []netip.Addr) { k.set(func() { k.nodes = all }) }

// Servers sets where the API says that servers are.
func (k *Keeper) Servers(all []netip.AddrPort) { k.set(func() { k.servers = all }) }

// Gossip sets where servers gossip: "ip:port". What cannot be read is left out.
func (k *Keeper) Gossip(all []string) {
	var read []netip.AddrPort
	for _, text := range all {
		if at, err := netip.ParseAddrPort(text); err == nil {
			read = append(read, at)
		}
	}
	k.set(func() { k.gossip = read })
}

func (k *Keeper) set(change func()) {
	k.mu.Lock()
	change()
	k.mu.Unlock()
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run keeps the network informed until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	again := time.NewTicker(lookInterval)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
			k.tell()
		case <-again.C:
			k.Look(ctx)
		}
	}
}

// Look resolves the servers' names and tells the network what is new before it returns.
func (k *Keeper) Look(ctx context.Context) {
	for _, server := range k.Config.Servers {
		found, err := k.resolve(ctx, server)
		if err != nil {
			k.Logger.Debug("a server's name is not resolved; it keeps the addresses that it had", "server", server, "err", err)
			continue
		}
		k.mu.Lock()
		k.named[server] = found
		k.mu.Unlock()
	}
	k.tell()
}

func (k *Keeper) resolve(ctx context.Context, server string) (found []netip.AddrPort, err error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addresses, err := k.Resolve(ctx, host)
	for _, ip := range addresses {
		found = append(found, netip.AddrPortFrom(ip.Unmap(), uint16(number)))
	}
	return found, err
}

func (k *Keeper) tell() {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	next := k.list()
	same := k.known && slices.Equal(next, k.told)
	k.mu.Unlock()
	if same {
		return
	}
	err := k.Tell(next)
	if err != nil {
		k.Logger.Warn("Services may lead the cluster's own traffic astray", "err", err)
	}
	k.mu.Lock()
	k.told, k.known = next, err == nil
	k.mu.Unlock()
}

// list is sorted. k.mu is held.
func (k *Keeper) list() []network.ServiceAddress {
	all := map[network.ServiceAddress]bool{}
	add := func(protocol uint8, at netip.AddrPort) {
		all[network.ServiceAddress{Protocol: protocol, Address: at}] = true
	}
	here := func(p Port) {
		add(p.Protocol, netip.AddrPortFrom(netip.IPv4Unspecified(), p.Number))
		add(p.Protocol, netip.AddrPortFrom(netip.IPv6Unspecified(), p.Number))
	}
	both := func(at netip.AddrPort, protocols ...uint8) {
		for _, protocol := range protocols {
			add(protocol, at)
			here(Port{protocol, at.Port()})
		}
	}
	for _, named := range append(slices.Collect(maps.Values(k.named)), k.servers) {
		for _, at := range named {
			both(at, unix.IPPROTO_TCP)
		}
	}
	for _, at := range k.gossip {
		both(at, unix.IPPROTO_TCP, unix.IPPROTO_UDP)
	}
	for _, p := range k.Ports {
		here(p)
		for _, ip := range k.nodes {
			add(p.Protocol, netip.AddrPortFrom(ip, p.Number))
		}
	}
	return slices.SortedFunc(maps.Keys(all), network.ServiceAddress.Compare)
}
