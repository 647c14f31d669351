package dns

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/setpoint-io/setpoint/agent/net/dns/corefile"
	"github.com/setpoint-io/setpoint/agent/net/dns/records"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// Limits of answers.
const (
	// waitingMax is how many questions may wait for other servers, waitingEach how many of one client; further ones are refused.
	waitingMax, waitingEach = 4096, 1024
	// aliasesMax is how many names an ExternalName may lead through within the cluster.
	aliasesMax = 8
	// Sizes of answers by UDP, in bytes: of clients that say nothing, and the most that passes any network whole.
	plainBytes = dns.MinMsgSize
	ednsBytes  = 1232
)

// handle answers one question; the library has seen that there is one.
func (s *server) handle(ctx context.Context, w dns.ResponseWriter, asked *dns.Msg) {
	begun := time.Now()
	reply := s.reply(context.WithValue(ctx, clientKey{}, w.RemoteAddr()), asked)
	protocol := "udp"
	size := plainBytes
	if _, ok := w.RemoteAddr().(*net.TCPAddr); ok {
		protocol, size = "tcp", dns.MaxMsgSize
	}
	if opt := asked.IsEdns0(); opt != nil {
		size = max(size, min(int(opt.UDPSize()), ednsBytes))
	}
	reply.Truncate(size)
	reply.Compress = true
	s.metrics.count(protocol, asked.Question[0].Qtype, reply.Rcode, time.Since(begun))
	_ = w.WriteMsg(reply) // a client that is gone needs no answer
}

// clientKey finds who asks, by the address alone: each pod has its own.
type clientKey struct{}

func clientOf(ctx context.Context) string {
	from, ok := ctx.Value(clientKey{}).(net.Addr)
	if !ok {
		return ""
	}
	at, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return ""
	}
	return at.Addr().Unmap().String()
}

// reply is the whole answer, however large.
func (s *server) reply(ctx context.Context, asked *dns.Msg) *dns.Msg {
	reply := new(dns.Msg)
	reply.SetReply(asked)
	reply.RecursionAvailable = true
	opt := asked.IsEdns0()
	if opt != nil {
		reply.SetEdns0(ednsBytes, opt.Do())
	}
	q := asked.Question[0]
	switch {
	case opt != nil && opt.Version() != 0:
		reply.Rcode = dns.RcodeBadVers
		return reply
	case q.Name == s.probe.name:
		s.probe.seen.Add(1)
		reply.Rcode = dns.RcodeNameError
		return reply
	case q.Qclass != dns.ClassINET || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR:
		reply.Rcode = dns.RcodeRefused
		return reply
	case q.Qtype == dns.TypeANY: // RFC 8482
		header := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeHINFO, Class: q.Qclass, Ttl: ttlOfAny}
		reply.Answer = []dns.RR{&dns.HINFO{Hdr: header, Cpu: "RFC8482"}}
		return reply
	}
	r := s.routes.Load()
	lower := strings.ToLower(q.Name)
	block := r.config.For(lower)
	if block == nil {
		s.answer(ctx, reply, q, nil)
		return reply
	}
	if block.Log {
		s.Logger.Info("DNS question", "name", q.Name, "type", dns.Type(q.Qtype).String())
	}
	other := q
	if other.Name = block.Rewritten(lower); other.Name == lower {
		other.Name = q.Name
	}
	s.answer(ctx, reply, other, block)
	rename(reply, other.Name, q.Name)
	return reply
}

// ttlOfAny is long: the answer is always the same.
const ttlOfAny = 3600

// rename gives records of the name that was asked for instead the name that the client knows.
func rename(reply *dns.Msg, from, to string) {
	if from == to {
		return
	}
	for _, record := range reply.Answer {
		if h := record.Header(); strings.EqualFold(h.Name, from) {
			h.Name = to
		}
	}
}

// answer fills in what is known of a question.
func (s *server) answer(ctx context.Context, reply *dns.Msg, q dns.Question, block *corefile.Block) {
	if block != nil && block.Hosts != nil && fromHosts(reply, q, block.Hosts) {
		return
	}
	for range aliasesMax {
		zone := s.zone.Load()
		a, ours := zone.Answer(q.Name, q.Qtype, s.view.objects())
		switch {
		case !ours:
			s.forward(ctx, reply, q, block)
			return
		case !s.view.known():
			reply.Rcode = dns.RcodeServerFailure
			return
		}
		reply.Authoritative = len(reply.Answer) == 0 || reply.Authoritative
		reply.Answer = append(reply.Answer, rotated(a.Records)...)
		reply.Extra = append(reply.Extra, a.Additional...)
		if a.Alias == "" || q.Qtype == dns.TypeCNAME {
			s.finish(reply, a, zone)
			return
		}
		q.Name = a.Alias
	}
	reply.Answer, reply.Extra, reply.Rcode = nil, nil, dns.RcodeServerFailure // they lead in a circle
}

// finish says what an answer without records means.
func (s *server) finish(reply *dns.Msg, a records.Answer, zone *records.Zone) {
	if len(a.Records) > 0 {
		return
	}
	reply.Ns = []dns.RR{zone.SOA()}
	if !a.Exists {
		reply.Rcode = dns.RcodeNameError
	}
}

// rotated spreads clients that take the first address.
func rotated(all []dns.RR) []dns.RR {
	if len(all) < 2 {
		return all
	}
	at := rand.IntN(len(all))
	return slices.Concat(all[at:], all[:at])
}

// forward asks other servers. What they say of their own authority and options is left out.
func (s *server) forward(ctx context.Context, reply *dns.Msg, q dns.Question, block *corefile.Block) {
	leave, err := s.waiting.Enter(shares.Holder{Name: "client " + clientOf(ctx)})
	if err != nil {
		s.metrics.forwarded.Busy.Add(1)
		reply.Answer, reply.Rcode = nil, dns.RcodeRefused
		return
	}
	defer leave()
	to := s.routes.Load().forwarder(block, strings.ToLower(q.Name))
	if to == nil {
		reply.Rcode = dns.RcodeRefused
		return
	}
	opt := reply.IsEdns0()
	got, err := to.Ask(ctx, clientOf(ctx), q, opt != nil && opt.Do())
	if err != nil {
		s.Logger.Debug("no server answers", "name", q.Name, "err", err)
		reply.Answer, reply.Rcode = nil, dns.RcodeServerFailure
		return
	}
	reply.Authoritative = reply.Authoritative && len(reply.Answer) > 0
	reply.Rcode, reply.AuthenticatedData = got.Rcode, got.AuthenticatedData
	reply.Answer = append(reply.Answer, got.Answer...)
	reply.Ns = got.Ns
	for _, record := range got.Extra {
		if record.Header().Rrtype != dns.TypeOPT {
			reply.Extra = append(reply.Extra, record)
		}
	}
}
