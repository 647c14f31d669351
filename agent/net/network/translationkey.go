package network

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// firstOfAll is the first of the registers of 4 bytes. The next two are for what is no key.
const (
	firstOfAll uint32 = unix.NFT_REG32_00 + iota
	firstRegister
	secondRegister
)

func (f family) serviceKey() nftables.SetDatatype {
	return nftables.MustConcatSetType(f.Key, nftables.TypeInetProto, nftables.TypeInetService)
}

// destinationType is what lead takes from a map.
func (f family) destinationType() nftables.SetDatatype {
	return nftables.MustConcatSetType(f.Key, nftables.TypeInetService)
}

// destinationIs compares whose address the destination is: RTN_LOCAL is the machine's.
func destinationIs(op expr.CmpOp, kind uint32) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: firstRegister, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: op, Register: firstRegister, Data: binaryutil.NativeEndian.PutUint32(kind)},
	}
}

func concatenated(a netip.AddrPort) []byte {
	return append(binary.BigEndian.AppendUint16(a.Addr().AsSlice(), a.Port()), 0, 0)
}
