package ipfamily

import (
	"net"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// FirstRegister is the first of the registers of 4 bytes, one behind the other, of which keys are made; what follows uses it.
const FirstRegister uint32 = unix.NFT_REG32_00

// Protocols are IANA's numbers.
var Protocols = map[corev1.Protocol]uint8{
	corev1.ProtocolTCP: unix.IPPROTO_TCP, corev1.ProtocolUDP: unix.IPPROTO_UDP, corev1.ProtocolSCTP: unix.IPPROTO_SCTP,
}

// Match compares an address of the header with a range.
func (f Family) Match(offset uint32, op expr.CmpOp, prefix netip.Prefix) []expr.Any {
	prefix = prefix.Masked()
	return []expr.Any{
		f.Load(FirstRegister, offset),
		&expr.Bitwise{
			SourceRegister: FirstRegister, DestRegister: FirstRegister, Len: f.AddressBytes,
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()), Xor: make([]byte, f.AddressBytes),
		},
		&expr.Cmp{Op: op, Register: FirstRegister, Data: prefix.Addr().AsSlice()},
	}
}

// ProtocolIs holds for packets of the protocol of this number.
func ProtocolIs(number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: FirstRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: FirstRegister, Data: []byte{number}},
	}
}

// PortBytes is how long a port is in the headers of TCP, UDP and SCTP, which have the source's first.
const PortBytes = 2

// LoadPort puts the port that a packet of one of these is sent to into the register.
func LoadPort(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: PortBytes, Len: PortBytes}
}

// InState holds for packets of any of the states that connection tracking finds.
func InState(states uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: FirstRegister},
		&expr.Bitwise{SourceRegister: FirstRegister, DestRegister: FirstRegister, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(states), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: FirstRegister, Data: make([]byte, 4)},
	}
}
