package records

import (
	"net/netip"

	"github.com/miekg/dns"
)

// Found is what a name leads to, for those who do not speak DNS.
type Found struct {
	Addresses []netip.Addr
	Exists    bool
	Alias     string
}

// Lookup is the Answer to the questions for a name's addresses, those of IPv4 first.
func (z Zone) Lookup(name string, view View) (f Found, ok bool) {
	for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		answer, ours := z.Answer(name, qtype, view)
		if !ours {
			return Found{}, false
		}
		f.Exists, f.Alias = answer.Exists, answer.Alias
		for _, r := range answer.Records {
			if address := addressIn(r); address.IsValid() {
				f.Addresses = append(f.Addresses, address)
			}
		}
	}
	return f, true
}

// addressIn is invalid for a record of another kind.
func addressIn(record dns.RR) (address netip.Addr) {
	switch r := record.(type) {
	case *dns.A:
		address, _ = netip.AddrFromSlice(r.A.To4())
	case *dns.AAAA:
		address, _ = netip.AddrFromSlice(r.AAAA)
	}
	return address
}
