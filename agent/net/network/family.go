package network

import (
	"net/netip"
	"os"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
)

// family is a version of IP, and what rules need of it beside its header.
type family struct {
	ipfamily.Family
	number      uint32 // the kernel's
	loopback    netip.Prefix
	unspecified netip.Addr
	// portUnreachable is the code of ICMP that a connect takes for "refused".
	portUnreachable uint8
}

var (
	inet = family{
		Family: ipfamily.V4, number: unix.AF_INET, loopback: netip.MustParsePrefix("127.0.0.0/8"), unspecified: netip.IPv4Unspecified(),
		portUnreachable: 3,
	}
	inet6 = family{
		Family: ipfamily.V6, number: unix.AF_INET6, loopback: netip.MustParsePrefix("::1/128"), unspecified: netip.IPv6Unspecified(),
		portUnreachable: 4,
	}
)

// Registers of 4 bytes, one behind the other: what is loaded into them is one key. An address takes one of them, or four.
func (f family) sourceRegister() uint32   { return firstOfAll }
func (f family) addressRegister() uint32  { return f.sourceRegister() + f.Words() }
func (f family) protocolRegister() uint32 { return f.addressRegister() + f.Words() }
func (f family) portRegister() uint32     { return f.protocolRegister() + 1 }
func (f family) indexRegister() uint32    { return f.portRegister() + 1 }

// loadKey puts address, protocol and port of the destination where serviceKey has them.
func (f family) loadKey() []expr.Any {
	return append([]expr.Any{f.loadDestination(f.addressRegister())}, f.loadPort()...)
}

// loadPortKey is loadKey for node ports, whose address is unspecified. It is made of one that is an address, since nft knows no kind of
// a plain constant, and could not read what it prints.
func (f family) loadPortKey() []expr.Any {
	none := become(f.addressRegister(), f.unspecified.AsSlice())
	return append([]expr.Any{f.loadDestination(f.addressRegister()), none}, f.loadPort()...)
}

func (f family) loadPort() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: f.protocolRegister()},
		ipfamily.LoadPort(f.portRegister()),
	}
}

// Where translation of what is sent to an address begins: first the machine's own address of a Service, then Services, then host ports. So
// no pod takes what a Service has, whichever table was made last.
const (
	servicesPriority  = -100 // dstnat
	hostPortsPriority = servicesPriority + 5
)

func (f family) loadSource(register uint32) expr.Any { return f.Load(register, f.Source) }

func (f family) loadDestination(register uint32) expr.Any { return f.Load(register, f.Destination) }

// translateTo leads the connection to the address and port in the registers.
func (f family) translateTo(register uint32) expr.Any {
	return &expr.NAT{
		Type: expr.NATTypeDestNAT, Family: f.number, RegAddrMin: register, RegProtoMin: register + f.Words(), Specified: true,
	}
}

// HasIPv6 reports whether this machine's network namespace has IPv6 at all.
func HasIPv6() bool {
	_, err := os.Stat("/proc/self/net/if_inet6")
	return err == nil
}
