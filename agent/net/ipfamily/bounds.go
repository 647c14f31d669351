package ipfamily

import "net/netip"

// Bounds are the first and the last address of a range.
func Bounds(p netip.Prefix) (first, last netip.Addr) {
	first = p.Masked().Addr()
	end := first.AsSlice()
	for bit := p.Bits(); bit < first.BitLen(); bit++ {
		end[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ = netip.AddrFromSlice(end)
	return first, last
}
