package network

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Registers of 4 bytes, one behind the other: what is loaded into them is one key.
const (
	sourceRegister uint32 = unix.NFT_REG32_00 + iota
	firstRegister
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
	return append([]expr.Any{
		&expr.Payload{DestRegister: firstRegister, Base: expr.PayloadBaseNetworkHeader, Offset: destinationOffset, Len: addressBytes},
	}, loadPort()...)
}

// loadPortKey is loadKey for node ports, whose address is unspecified.
func loadPortKey() []expr.Any {
	return append([]expr.Any{&expr.Immediate{Register: firstRegister, Data: make([]byte, addressBytes)}}, loadPort()...)
}

func loadPort() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: secondRegister},
		&expr.Payload{DestRegister: thirdRegister, Base: expr.PayloadBaseTransportHeader, Offset: destinationPortOffset, Len: portBytes},
	}
}

func loadSource(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: sourceOffset, Len: addressBytes}
}

// destinationIs compares whose address the destination is: RTN_LOCAL is the machine's.
func destinationIs(op expr.CmpOp, kind uint32) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: firstRegister, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: op, Register: firstRegister, Data: binaryutil.NativeEndian.PutUint32(kind)},
	}
}

// translateTo leads the connection to the address and port in two registers.
func translateTo(register uint32) expr.Any {
	return &expr.NAT{
		Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register, RegProtoMin: register + 1, Specified: true,
	}
}

func concatenated(a netip.AddrPort) []byte {
	return append(binary.BigEndian.AppendUint16(a.Addr().AsSlice(), a.Port()), 0, 0)
}
