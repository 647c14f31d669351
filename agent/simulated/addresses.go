package simulated

import (
	"encoding/binary"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Addresses nobody can reach, from the block reserved for benchmarks: nodes
// use the lower half, and pods the upper while their node has no pod CIDR.
var (
	hostBlock     = netip.MustParsePrefix("198.18.0.0/16")
	fallbackBlock = netip.MustParsePrefix("198.19.0.0/16")
)

// podsPerNodeMax is what a /24 holds beside its first and last address.
const podsPerNodeMax = 254

// addresses hands out pod addresses, one small table for each node.
type addresses struct {
	mu    sync.Mutex
	nodes map[string]*nodeAddresses
}

type nodeAddresses struct {
	byPod map[types.UID]string
	used  map[string]bool
	next  int
}

func newAddresses() *addresses { return &addresses{nodes: map[string]*nodeAddresses{}} }

func (a *addresses) of(node string) *nodeAddresses {
	n := a.nodes[node]
	if n == nil {
		n = &nodeAddresses{byPod: map[types.UID]string{}, used: map[string]bool{}}
		a.nodes[node] = n
	}
	return n
}

// adopt remembers the address a pod got from an earlier Run.
func (a *addresses) adopt(pod *corev1.Pod) {
	if pod.Status.PodIP == "" || pod.Spec.HostNetwork {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.of(pod.Spec.NodeName)
	n.byPod[pod.UID], n.used[pod.Status.PodIP] = pod.Status.PodIP, true
}

// assign returns the pod's address, the same one each time. With more than
// podsPerNodeMax pods on a node, addresses repeat.
func (a *addresses) assign(node string, uid types.UID, cidr string, index int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.of(node)
	if ip, ok := n.byPod[uid]; ok {
		return ip
	}
	base := blockOf(cidr, index)
	ip := ""
	for range podsPerNodeMax {
		n.next = n.next%podsPerNodeMax + 1
		if ip = offset(base, n.next); !n.used[ip] {
			break
		}
	}
	n.byPod[uid], n.used[ip] = ip, true
	return ip
}

func (a *addresses) release(node string, uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[node]; n != nil {
		delete(n.used, n.byPod[uid])
		delete(n.byPod, uid)
	}
}

func blockOf(cidr string, index int) netip.Addr {
	if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr().Is4() {
		return p.Masked().Addr()
	}
	return netip.MustParseAddr(offset(fallbackBlock.Addr(), index%256*256))
}

// second is the address with the same number in the second range as ip has in the first.
func second(first, second, ip string) string {
	base, address, six := blockOf(first, 0).As4(), netip.MustParseAddr(ip).As4(), netip.MustParsePrefix(second).Masked().Addr().As16()
	number := binary.BigEndian.Uint32(address[:]) - binary.BigEndian.Uint32(base[:])
	binary.BigEndian.PutUint32(six[12:], binary.BigEndian.Uint32(six[12:])+number)
	return netip.AddrFrom16(six).String()
}

func hostIP(index int) string { return offset(hostBlock.Addr(), index+1) }

// hostIP is the address of a node: that of an adopted one is its own.
func (f *fleet) hostIP(name string) string {
	node, err := f.nodes.Get(name)
	if len(f.Adopted) == 0 || err != nil {
		return hostIP(f.names[name])
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return hostIP(f.names[name])
}

func offset(base netip.Addr, n int) string {
	b := base.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).String()
}
