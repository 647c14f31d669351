package announce

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// announceInterval is how often an address is announced without being asked for.
const announceInterval = 10 * time.Second

// frameBytesMax is more than a frame of ARP has.
const frameBytesMax = 128

// Announcer answers ARP for addresses that are no interface's: packets to them come here and are translated. mu guards held;
// a yielded address is one that another machine has announced since the last Set.
type Announcer struct {
	nodeIP netip.Addr
	logger *slog.Logger
	mu     sync.Mutex
	held   map[netip.Addr]*announced
	wake   chan struct{}
}

type announced struct{ yielded bool }

// New announces on the link of the node's address, while Run runs.
func New(nodeIP netip.Addr, logger *slog.Logger) *Announcer {
	return &Announcer{nodeIP: nodeIP, logger: logger, held: map[netip.Addr]*announced{}, wake: make(chan struct{}, 1)}
}

// Set replaces the addresses. New ones are announced at once.
func (a *Announcer) Set(addresses []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, news := map[netip.Addr]*announced{}, false
	for _, ip := range addresses {
		was := a.held[ip]
		news = news || was == nil || was.yielded
		next[ip] = &announced{}
	}
	a.held = next
	if news {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// errNoLink: the node's address is on no interface with a hardware address.
var errNoLink = errors.New("no link to announce load balancers' addresses on")

// Run answers until ctx ends; it waits for the first address before it opens a socket.
func (a *Announcer) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.wake:
	}
	for ctx.Err() == nil {
		if err := a.serve(ctx); err != nil {
			a.logger.Warn("load balancers' addresses are not announced", "node", a.nodeIP.String(), "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(announceInterval):
		}
	}
}

// serve answers on one socket.
func (a *Announcer) serve(ctx context.Context) error {
	link, socket, err := a.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var children sync.WaitGroup
	defer children.Wait()
	defer socket.Close()
	defer cancel()
	children.Go(func() { a.repeat(ctx, link, socket) })
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	frame := make([]byte, frameBytesMax)
	for {
		n, err := socket.Read(frame)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if answer := a.answer(frame[:n], link.HardwareAddr); answer != nil {
			_, _ = socket.Write(answer) // who asked asks again
		}
	}
}

func (a *Announcer) open() (*netlink.LinkAttrs, *os.File, error) {
	link, err := a.link()
	if err != nil {
		return nil, nil, err
	}
	protocol := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ARP))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index}); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	return link, os.NewFile(uintptr(fd), "arp"), nil
}

func (a *Announcer) link() (*netlink.LinkAttrs, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		addresses, err := netlink.AddrList(l, netlink.FAMILY_V4)
		if err != nil {
			return nil, err
		}
		for _, own := range addresses {
			if ip, ok := netip.AddrFromSlice(own.IP.To4()); ok && ip == a.nodeIP && len(l.Attrs().HardwareAddr) == hardwareBytes {
				return l.Attrs(), nil
			}
		}
	}
	return nil, errNoLink
}

// repeat announces what is held, at once when there is more.
func (a *Announcer) repeat(ctx context.Context, link *netlink.LinkAttrs, socket *os.File) {
	tick := time.NewTicker(announceInterval)
	defer tick.Stop()
	for {
		for _, ip := range a.announcing() {
			_, _ = socket.Write(arpFrame(arpRequest, link.HardwareAddr, ip, broadcast, ip))
		}
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-tick.C:
		}
	}
}

func (a *Announcer) announcing() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []netip.Addr
	for ip, state := range a.held {
		if !state.yielded {
			all = append(all, ip)
		}
	}
	return all
}

// answer is the reply to a frame, if it needs one. Another machine that announces one of the addresses has it from then on: it
// heard of its election, and we did not.
func (a *Announcer) answer(frame []byte, own net.HardwareAddr) []byte {
	heard, ok := parseARP(frame)
	if !ok || bytes.Equal(heard.sender, own) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if state := a.held[heard.senderIP]; state != nil && !state.yielded {
		state.yielded = true
		a.logger.Warn("another machine announces a load balancer's address", "address", heard.senderIP.String(), "machine", heard.sender.String())
	}
	if state := a.held[heard.targetIP]; heard.operation != arpRequest || state == nil || state.yielded {
		return nil
	}
	return arpFrame(arpReply, own, heard.targetIP, heard.sender, heard.senderIP)
}
