package gossip

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

var errNoRoute = errors.New("no route")

// network joins transports in memory. Hosts may be apart, or gone.
type network struct {
	mu    sync.Mutex
	hosts map[string]*transport // by ip:port
	apart func(from, to string) bool
	lost  int // every n-th packet, 0: none
	sent  int
}

func newNetwork(t *testing.T) *network {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // what members have begun ends by time-outs
	return &network{hosts: map[string]*transport{}, apart: func(string, string) bool { return false }}
}

// separate changes who reaches whom.
func (n *network) separate(apart func(from, to string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart = apart
}

func (n *network) transport() *transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &transport{network: n, ip: fmt.Sprintf("10.0.0.%d", len(n.hosts)+1),
		packets: make(chan *memberlist.Packet, 1024), streams: make(chan net.Conn, 64), done: make(chan struct{})}
	n.hosts[t.address()] = t
	return t
}

func (n *network) reach(from *transport, to string, packet bool) (*transport, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host := n.hosts[to]
	if host == nil || n.apart(from.ip, host.ip) {
		return nil, false
	}
	if n.sent++; packet && n.lost > 0 && n.sent%n.lost == 0 {
		return nil, false
	}
	return host, true
}

// transport implements memberlist.NodeAwareTransport.
type transport struct {
	network *network
	ip      string
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
	once    sync.Once
}

const testPort = 7946

func (t *transport) address() string { return fmt.Sprintf("%s:%d", t.ip, testPort) }

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return net.ParseIP(t.ip).To4(), testPort, nil
}

func (t *transport) WriteTo(b []byte, to string) (time.Time, error) {
	now := time.Now()
	host, ok := t.network.reach(t, to, true)
	if !ok {
		return now, nil
	}
	packet := &memberlist.Packet{Buf: append([]byte(nil), b...), From: &net.UDPAddr{IP: net.ParseIP(t.ip), Port: testPort}, Timestamp: now}
	select {
	case host.packets <- packet:
	default: // lost
	}
	return now, nil
}

func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, to.Addr)
}

func (t *transport) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	host, ok := t.network.reach(t, to, false)
	if !ok {
		time.Sleep(timeout)
		return nil, fmt.Errorf("%w: %s", errNoRoute, to)
	}
	near, far := net.Pipe()
	_ = near.SetDeadline(time.Now().Add(timeout)) // the label is written before any deadline is set
	select {
	case host.streams <- far:
		return near, nil
	case <-host.done:
		return nil, errNoRoute
	}
}

func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(to.Addr, timeout)
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streams }
func (t *transport) Shutdown() error                     { t.once.Do(func() { close(t.done) }); return nil }

// among tells apart the hosts listed from all others.
func among(ips ...string) func(from, to string) bool {
	in := func(ip string) bool { return strings.Contains(strings.Join(ips, ",")+",", ip+",") }
	return func(from, to string) bool { return in(from) != in(to) }
}
