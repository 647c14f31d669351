package ipfamily

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// registerBytes is how much of a key one register has.
const registerBytes = 4

// Family is a version of IP.
type Family struct {
	Tables nftables.TableFamily
	// Key is the type of addresses in sets, of AddressBytes each.
	Key          nftables.SetDatatype
	AddressBytes uint32
	// Source and Destination are offsets in the header, in bytes.
	Source, Destination uint32
}

// The families.
var (
	V4 = Family{Tables: nftables.TableFamilyIPv4, Key: nftables.TypeIPAddr, AddressBytes: 4, Source: 12, Destination: 16}
	V6 = Family{Tables: nftables.TableFamilyIPv6, Key: nftables.TypeIP6Addr, AddressBytes: 16, Source: 8, Destination: 24}
)

// Has reports whether the address is one of the family.
func (f Family) Has(address netip.Addr) bool { return address.BitLen() == int(f.AddressBytes)*8 }

// Words are how many registers an address takes.
func (f Family) Words() uint32 { return f.AddressBytes / registerBytes }

// Load puts an address of the header into the registers from the given one.
func (f Family) Load(register, offset uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.AddressBytes}
}
