package table

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// firstRegister is the first of the registers of 4 bytes, one behind the other, of which keys are made.
const firstRegister uint32 = unix.NFT_REG32_00

// family is a version of IP: where packets have its addresses, and how nftables calls it.
type family struct {
	tables nftables.TableFamily
	// key is the type of addresses in sets, of addressBytes each.
	key          nftables.SetDatatype
	addressBytes uint32
	// source and destination are offsets in the header, in bytes.
	source, destination uint32
	icmp                byte // IANA's number of the protocol that tells of errors
}

var (
	inet = family{
		tables: nftables.TableFamilyIPv4, key: nftables.TypeIPAddr, addressBytes: 4, source: 12, destination: 16, icmp: unix.IPPROTO_ICMP,
	}
	inet6 = family{
		tables: nftables.TableFamilyIPv6, key: nftables.TypeIP6Addr, addressBytes: 16, source: 8, destination: 24, icmp: unix.IPPROTO_ICMPV6,
	}
)

// behindAddress is the register behind an address in the first one.
func (f family) behindAddress() uint32 { return firstRegister + f.addressBytes/4 }

func (f family) address(offset, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.addressBytes}
}
