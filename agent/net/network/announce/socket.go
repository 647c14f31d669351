package announce

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// listening is what a socket hears of a link: the frames of a type that the filter lets through; nil lets all through.
type listening struct {
	etherType uint16
	filter    []bpf.Instruction
}

// errNoLink: the node's address is on no interface with a hardware address.
var errNoLink = errors.New("no link to announce load balancers' addresses on")

// open hears and sends on the link of the node's address.
func open(nodeIP netip.Addr, l listening) (self, *os.File, error) {
	own, err := linkOf(nodeIP)
	if err != nil {
		return self{}, nil, err
	}
	// Of no type before it is bound and has its filter.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return self{}, nil, err
	}
	protocol := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, l.etherType))
	err = setFilter(fd, l.filter)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: own.index})
	}
	if err != nil {
		return self{}, nil, errors.Join(err, unix.Close(fd))
	}
	return own, os.NewFile(uintptr(fd), "announce"), nil
}

func setFilter(fd int, filter []bpf.Instruction) error {
	if len(filter) == 0 {
		return nil
	}
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	attached := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, attached)
}

func linkOf(nodeIP netip.Addr) (self, error) {
	links, err := link.List()
	if err != nil {
		return self{}, err
	}
	for _, l := range links {
		addresses, err := link.Addresses(l, netlink.FAMILY_ALL)
		if err != nil {
			return self{}, err
		}
		for _, own := range addresses {
			ip, ok := netip.AddrFromSlice(own.IP)
			if hardware := l.Attrs().HardwareAddr; ok && ip.Unmap() == nodeIP && len(hardware) == hardwareBytes {
				return self{l.Attrs().Index, hardware, nodeIP}, nil
			}
		}
	}
	return self{}, errNoLink
}
