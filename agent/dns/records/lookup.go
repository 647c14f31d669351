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

// Lookup is the Answer to the question for a name's IPv4 addresses.
func (z Zone) Lookup(name string, view View) (f Found, ok bool) {
	answer, ok := z.Answer(name, dns.TypeA, view)
	f = Found{Exists: answer.Exists, Alias: answer.Alias}
	for _, r := range answer.Records {
		if a, is := r.(*dns.A); is {
			if address, valid := netip.AddrFromSlice(a.A.To4()); valid {
				f.Addresses = append(f.Addresses, address)
			}
		}
	}
	return f, ok
}
