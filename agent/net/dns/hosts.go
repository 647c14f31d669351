package dns

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/setpoint-io/setpoint/agent/net/dns/corefile"
)

// fromHosts answers from the names of a Corefile, and reports whether nobody else is to be asked.
func fromHosts(reply *dns.Msg, q dns.Question, h *corefile.Hosts) bool {
	addresses, listed := h.Addresses[strings.ToLower(q.Name)]
	if !listed {
		if !h.Fallthrough {
			reply.Rcode = dns.RcodeNameError
		}
		return !h.Fallthrough
	}
	reply.Authoritative = true
	for _, address := range addresses {
		reply.Answer = append(reply.Answer, hostRecords(q, address, h.TTL)...)
	}
	return true
}

func hostRecords(q dns.Question, address netip.Addr, ttl uint32) []dns.RR {
	header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: ttl}
	switch {
	case q.Qtype == dns.TypeA && address.Is4():
		return []dns.RR{&dns.A{Hdr: header, A: address.AsSlice()}}
	case q.Qtype == dns.TypeAAAA && address.Is6():
		return []dns.RR{&dns.AAAA{Hdr: header, AAAA: address.AsSlice()}}
	}
	return nil
}
