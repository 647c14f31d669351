package network

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Registers of 4 bytes, one behind the other: what is loaded into them is one key.
const (
	firstRegister uint32 = unix.NFT_REG32_00 + iota
	secondRegister
	thirdRegister
	indexRegister
)

const (
	// destinationPortOffset is the same in TCP, UDP and SCTP.
	destinationPortOffset = 2
	portBytes             = 2
	// portUnreachable is ICMP's code that a connect takes for "refused".
	portUnreachable = 3
)

func serviceKey() nftables.SetDatatype {
	return nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService)
}

// destinationType is what lead takes from a map.
func destinationType() nftables.SetDatatype {
	return nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
}

// loadKey puts address, protocol and port of the destination where serviceKey has them.
func loadKey() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: firstRegister, Base: expr.PayloadBaseNetworkHeader, Offset: destinationOffset, Len: addressBytes},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: secondRegister},
		&expr.Payload{DestRegister: thirdRegister, Base: expr.PayloadBaseTransportHeader, Offset: destinationPortOffset, Len: portBytes},
	}
}

// key is the Service as loadKey loads it: each part fills its register with zeros.
func (s Service) key() []byte {
	key := append(s.Address.Addr().AsSlice(), s.Protocol, 0, 0, 0)
	return append(binary.BigEndian.AppendUint16(key, s.Address.Port()), 0, 0)
}

func concatenated(a netip.AddrPort) []byte {
	return append(binary.BigEndian.AppendUint16(a.Addr().AsSlice(), a.Port()), 0, 0)
}
