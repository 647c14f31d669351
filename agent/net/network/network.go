package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/bandwidth"
	"github.com/setpoint-io/setpoint/agent/net/network/guard"
	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// DefaultBridge is the bridge's name when only one agent runs in a network namespace.
const DefaultBridge = "setpoint0"

// PodInterface is the name of a pod's own interface.
const PodInterface = "eth0"

// Config of a Network.
type Config struct {
	// Bridge is the interface's name, at most 15 bytes, unique per agent of one network namespace.
	Bridge string
	// Ranges of the cluster. Traffic to that of pods keeps the pod's address. The machine itself looks for those of Services
	// behind the bridge, where they are translated, so that it reaches them without a default route too; invalid adds no route.
	Ranges Ranges
	// StateDir keeps the last address given; empty forgets it.
	StateDir string
	// MTU in bytes of the pods' interfaces; 0 leaves the kernel's 1500.
	MTU    int
	Logger *slog.Logger
}

// Network is the pod network of one node. It works once SetPodCIDR has been called. mu guards all but config and guard; connected are
// the pods by their host interfaces, and hostPorts those that have some, by their addresses.
type Network struct {
	config    Config
	guard     *guard.Guard
	mu        sync.Mutex
	addresses *addresses
	connected map[string]Endpoint
	hostPorts map[netip.Addr]Endpoint
}

// Endpoint is a pod's place in the network; it is all that Detach needs, in this process or a later one. Second is its address of
// IPv6, if it has one.
type Endpoint struct {
	Address       netip.Addr
	Second        netip.Addr `json:",omitzero"`
	HostInterface string
	HostPorts     []HostPort `json:",omitempty"`
}

// New prepares a network; nothing is changed on the machine before SetPodCIDR.
func New(config Config) *Network {
	if config.Bridge == "" {
		config.Bridge = DefaultBridge
	}
	return &Network{config: config, guard: guard.New(config.Bridge), connected: map[string]Endpoint{}}
}

// SetPodCIDR gives the node its addresses and sets the bridge up; second is its range of IPv6, if the cluster has any. Calling it
// again with the same ranges does nothing; a node's ranges never change, so other ones are an error.
func (n *Network) SetPodCIDR(prefix, second netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !prefix.IsValid() || !prefix.Addr().Is4() || prefix.Bits() > 30 {
		return fmt.Errorf("pod CIDR %s: want an IPv4 prefix of at most 30 bits", prefix)
	}
	second = n.usable(second)
	if second.IsValid() && (!second.Addr().Is6() || second.Addr().BitLen()-second.Bits() < prefix.Addr().BitLen()-prefix.Bits()) {
		return fmt.Errorf("pod CIDR %s: want an IPv6 prefix with as many addresses as %s has", second, prefix)
	}
	if n.addresses != nil {
		if has := n.addresses; has.prefix != prefix.Masked() || has.second != second.Masked() {
			return fmt.Errorf("pod CIDR is %s already, refusing %s", joinPrefixes(has.prefix, has.second), joinPrefixes(prefix, second))
		}
		return nil
	}
	pool := newAddresses(prefix, second, n.config.StateDir)
	if err := n.setUpBridge(pool); err != nil {
		return fmt.Errorf("bridge %s: %w", n.config.Bridge, err)
	}
	if err := n.adoptPods(); err != nil {
		return fmt.Errorf("pods of an earlier agent: %w", err)
	}
	for _, endpoint := range n.connected {
		pool.reserve(endpoint.Address)
	}
	n.addresses = pool
	n.setUpTables(pool)
	return nil
}

// usable is the range, unless this machine has no IPv6: its pods have addresses of IPv4 only then, which is said.
func (n *Network) usable(second netip.Prefix) netip.Prefix {
	if second.IsValid() && !HasIPv6() {
		n.config.Logger.Warn("pods of this node get no IPv6 addresses: its kernel has no IPv6", "range", second)
		return netip.Prefix{}
	}
	return second
}

func joinPrefixes(first, second netip.Prefix) string {
	if !second.IsValid() {
		return first.String()
	}
	return first.String() + "," + second.String()
}

// setUpTables makes what nftables does for pods. Those that run reach each other without it; new ones wait for the guard. What is missing
// is tried again; see Things.
func (n *Network) setUpTables(pool *addresses) {
	if err := n.forgetSecondRange(pool); err != nil {
		n.config.Logger.Warn("rules of a range that the node has no more are still there", "err", err)
	}
	if err := n.guard.Set(macOf(pool.gateway())); err != nil {
		n.config.Logger.Warn("no pod is connected until the frames that it sends can be judged: nftables is not usable", "err", err)
	}
	if err := n.openTables(pool); err != nil {
		n.config.Logger.Warn("pods may not reach each other or the outside, and host ports may lead nowhere: nftables is not usable", "err", err)
	}
}

// openTables makes what lets packets pass.
func (n *Network) openTables(pool *addresses) error {
	var errs []error
	for _, f := range pool.families() {
		errs = append(errs, n.masquerade(f, pool.of(f), n.config.Ranges.pods(f)), iptables.Forward(n.config.Bridge).Accept(f.Tables))
	}
	return errors.Join(append(errs, n.setPorts(n.hostPorts))...) // those of the pods that run
}

// families are those of the node's pods. n.mu is held.
func (n *Network) families() []family {
	if n.addresses == nil {
		return []family{inet}
	}
	return n.addresses.families()
}

// SetRanges says which ranges cover the pods of all nodes: what goes there keeps its source; and which the Services. SetPodCIDR
// uses them; later they change nothing.
func (n *Network) SetRanges(ranges Ranges) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.config.Ranges = ranges
}

// Ready returns nil when pods can be connected.
func (n *Network) Ready() error {
	if n.pool() == nil {
		return ErrNoPodCIDR
	}
	if _, err := netlink.LinkByName(n.config.Bridge); err != nil {
		return fmt.Errorf("bridge %s: %w", n.config.Bridge, err)
	}
	return nil
}

func (n *Network) pool() *addresses {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses
}

// Adopt keeps the address and the host ports of a pod that is already running from being given away. SetPodCIDR must not have
// been called.
func (n *Network) Adopt(endpoint Endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connected[endpoint.HostInterface] = endpoint
	n.guard.Adopt(endpoint.guarded())
	if len(endpoint.HostPorts) > 0 {
		if n.hostPorts == nil {
			n.hostPorts = map[netip.Addr]Endpoint{}
		}
		n.hostPorts[endpoint.Address] = endpoint
	}
}

// Pod is a pod that is to be connected.
type Pod struct {
	// PID is a process in its network namespace. ID makes the host interface's name unique.
	PID int
	ID  string
	// Admit, if it is not nil, is asked with the pod's addresses before anything can be sent from there or to them.
	Admit func(Endpoint) error
	// HostPorts lead to it.
	HostPorts []HostPort
	Bandwidth bandwidth.Limits
}

// Attach connects a pod.
func (n *Network) Attach(pod Pod) (Endpoint, error) {
	pool := n.pool()
	if pool == nil {
		return Endpoint{}, ErrNoPodCIDR
	}
	address, err := pool.allocate()
	if err != nil {
		return Endpoint{}, err
	}
	endpoint := Endpoint{
		Address: address, Second: pool.inSecond(address), HostInterface: HostInterface(pod.ID), HostPorts: pod.HostPorts,
	}
	if pod.Admit != nil {
		err = pod.Admit(endpoint)
	}
	if err == nil {
		err = n.guard.Add(endpoint.guarded())
	}
	if err == nil {
		err = n.connect(pod, endpoint, pool)
	}
	if err == nil {
		err = n.openPorts(endpoint)
	}
	if err != nil {
		return Endpoint{}, errors.Join(fmt.Errorf("connect pod: %w", err), n.Detach(endpoint))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connected[endpoint.HostInterface] = endpoint
	return endpoint, nil
}

func (e Endpoint) guarded() guard.Pod {
	return guard.Pod{Interface: e.HostInterface, Addresses: e.Addresses()}
}

// Detach closes the pod's host ports, removes its interface pair and frees its address. Doing it again is no error.
func (n *Network) Detach(endpoint Endpoint) error {
	n.mu.Lock()
	delete(n.connected, endpoint.HostInterface)
	n.mu.Unlock()
	_, err := link.Remove(endpoint.HostInterface) // it vanishes by itself when the pod's namespace goes
	err = errors.Join(n.closePorts(endpoint), err, bandwidth.Remove(endpoint.HostInterface), n.guard.Remove(endpoint.HostInterface),
		n.forgetSecond(endpoint))
	if err != nil {
		return fmt.Errorf("disconnect pod: %w", err)
	}
	if pool := n.pool(); pool != nil {
		pool.release(endpoint.Address)
	}
	return nil
}

// Forget removes the interface of a pod whose Endpoint is lost; its address was never reserved in this process.
func (n *Network) Forget(podID string) error {
	return n.Detach(Endpoint{HostInterface: HostInterface(podID)})
}

func (n *Network) connect(pod Pod, endpoint Endpoint, pool *addresses) error {
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", n.config.Bridge, err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = endpoint.HostInterface
	attributes.MTU = n.config.MTU
	attributes.MasterIndex = bridge.Attrs().Index
	attributes.Flags = net.FlagUp
	pair := netlink.NewVeth(attributes)
	pair.PeerName = PodInterface
	pair.PeerHardwareAddr = macOf(endpoint.Address)
	pair.PeerNamespace = netlink.NsPid(pod.PID)
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("interface pair: %w", err)
	}
	if err := pod.Bandwidth.Apply(pair); err != nil {
		return err
	}
	// Where br_netfilter is loaded (Docker does) a pod's call to a Service that leads to itself turns round in the bridge.
	if err := netlink.LinkSetHairpin(pair, true); err != nil {
		return fmt.Errorf("hairpin: %w", err)
	}
	if err := inNamespaceOf(pod.PID, func() error { return ignoreRouters(PodInterface) }); err != nil {
		return err
	}
	handle, err := handleOf(pod.PID)
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := configurePod(handle, endpoint.Address, pool.gateway()); err != nil {
		return err
	}
	if err := connectSecond(handle, bridge, endpoint, pool); err != nil {
		return err
	}
	return n.settle(handle, endpoint)
}

// settle makes the kernel act on "the link is up" now, for both ends and for a bridge that had no other pod. It does so
// when asked about a link; otherwise up to a second later, and until then it drops every packet, the pod's first ones.
func (n *Network) settle(handle *netlink.Handle, endpoint Endpoint) error {
	if _, err := handle.LinkByName(PodInterface); err != nil {
		return fmt.Errorf("%s: %w", PodInterface, err)
	}
	for _, name := range []string{endpoint.HostInterface, n.config.Bridge} {
		if _, err := netlink.LinkByName(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func handleOf(pid int) (*netlink.Handle, error) {
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	defer namespace.Close()
	// Without a family the library opens all that it knows, and some kernels lack one.
	handle, err := netlink.NewHandleAt(namespace, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	return handle, nil
}

// inNamespaceOf runs do in the network namespace of process pid: /proc/sys/net shows that of the thread which looks.
func inNamespaceOf(pid int, do func() error) error {
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	defer namespace.Close()
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("own network namespace: %w", err)
	}
	defer own.Close()
	if err := netns.Set(namespace); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace of process %d: %w", pid, err)
	}
	err = do()
	if back := netns.Set(own); back != nil {
		return errors.Join(err, fmt.Errorf("leave network namespace of process %d: %w", pid, back)) // nobody else may get this thread
	}
	runtime.UnlockOSThread()
	return err
}

func loopbackUp(handle *netlink.Handle) error {
	loopback, err := handle.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return handle.LinkSetUp(loopback)
}

func configurePod(handle *netlink.Handle, address, gateway netip.Addr) error {
	if err := loopbackUp(handle); err != nil {
		return err
	}
	eth0, err := handle.LinkByName(PodInterface)
	if err != nil {
		return fmt.Errorf("%s: %w", PodInterface, err)
	}
	if err := handle.AddrAdd(eth0, &netlink.Addr{IPNet: link.HostNet(address)}); err != nil {
		return fmt.Errorf("address %s: %w", address, err)
	}
	if err := handle.LinkSetUp(eth0); err != nil {
		return fmt.Errorf("%s up: %w", PodInterface, err)
	}
	route := netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := handle.RouteAdd(&route); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	return nil
}

// macOf makes the address of a pod's interface a function of its IP: neighbours that remember a former owner are right.
func macOf(address netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x0a, 0x58}, address.AsSlice()...)
}

const hostInterfacePrefix = "sp"

// HostInterface is the name of a pod's interface on the host.
func HostInterface(podID string) string {
	sum := sha256.Sum256([]byte(podID))
	return hostInterfacePrefix + hex.EncodeToString(sum[:])[:12]
}
