package table

import (
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
)

// firstRegister is the first of the registers of 4 bytes, one behind the other, of which keys are made.
const firstRegister uint32 = unix.NFT_REG32_00

// family is a version of IP.
type family struct {
	ipfamily.Family
	icmp byte // IANA's number of the protocol that tells of errors
}

var (
	inet  = family{ipfamily.V4, unix.IPPROTO_ICMP}
	inet6 = family{ipfamily.V6, unix.IPPROTO_ICMPV6}
)

// behindAddress is the register behind an address in the first one.
func (f family) behindAddress() uint32 { return firstRegister + f.Words() }
