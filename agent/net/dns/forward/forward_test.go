package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// upstream is a server on a free port of loopback, for both protocols.
func upstream(t *testing.T, answer func(w dns.ResponseWriter, m *dns.Msg)) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: conn}, {Listener: listener}} {
		s.Handler = dns.HandlerFunc(answer)
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go func() { _ = s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return at
}

func record(name, address string, ttl uint32) dns.RR {
	return &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}, A: net.ParseIP(address)}
}

func about(name string) dns.Question {
	return dns.Question{Name: name, Qtype: dns.TypeA, Qclass: dns.ClassINET}
}

func TestTheNextServerIsAsked(t *testing.T) {
	var asked atomic.Int64
	broken := upstream(t, func(w dns.ResponseWriter, m *dns.Msg) {
		asked.Add(1)
		_ = w.WriteMsg(new(dns.Msg).SetRcode(m, dns.RcodeServerFailure))
	})
	whole := upstream(t, func(w dns.ResponseWriter, m *dns.Msg) {
		reply := new(dns.Msg).SetReply(m)
		reply.Answer = []dns.RR{record(m.Question[0].Name, "192.0.2.1", 60)}
		_ = w.WriteMsg(reply)
	})
	f := New(t.Context(), Config{Upstreams: []netip.AddrPort{broken, whole}})
	for _, name := range []string{"a.", "b.", "A."} {
		got, err := f.Ask(t.Context(), "c", about(name), false)
		if err != nil || len(got.Answer) != 1 {
			t.Fatalf("%v %v", got, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the broken server was asked %d times, want once", asked.Load())
	}
	if c := f.config.Counts; c.Hits.Load() != 1 || c.Misses.Load() != 2 {
		t.Errorf("%d hits, %d misses", c.Hits.Load(), c.Misses.Load())
	}
}

func TestTruncatedAnswersAreAskedForByTCP(t *testing.T) {
	at := upstream(t, func(w dns.ResponseWriter, m *dns.Msg) {
		reply := new(dns.Msg).SetReply(m)
		for range 100 {
			reply.Answer = append(reply.Answer, record(m.Question[0].Name, "192.0.2.1", 60))
		}
		if _, ok := w.RemoteAddr().(*net.UDPAddr); ok {
			reply.Truncate(dns.MinMsgSize)
		}
		_ = w.WriteMsg(reply)
	})
	got, err := New(t.Context(), Config{Upstreams: []netip.AddrPort{at}}).Ask(t.Context(), "c", about("large."), false)
	if err != nil || len(got.Answer) != 100 {
		t.Errorf("%v", err)
	}
}

func TestAnAnswerToAnotherQuestionIsNone(t *testing.T) {
	at := upstream(t, func(w dns.ResponseWriter, m *dns.Msg) {
		reply := new(dns.Msg).SetReply(m)
		reply.Question[0].Name = "other."
		_ = w.WriteMsg(reply)
	})
	if got, err := New(t.Context(), Config{Upstreams: []netip.AddrPort{at}}).Ask(t.Context(), "c", about("a."), false); err == nil {
		t.Errorf("%v", got)
	}
	if _, err := New(t.Context(), Config{}).Ask(t.Context(), "c", about("a."), false); err == nil {
		t.Error("nobody to ask, and an answer")
	}
}

// TestEqualQuestionsAreAskedOnce, and what is under way ends with the Forwarder's life.
func TestEqualQuestionsAreAskedOnce(t *testing.T) {
	var asked atomic.Int64
	arrived, ended := make(chan struct{}, 10), make(chan struct{})
	at := upstream(t, func(dns.ResponseWriter, *dns.Msg) {
		asked.Add(1)
		arrived <- struct{}{}
		<-ended
	})
	t.Cleanup(func() { close(ended) })
	life, cancel := context.WithCancel(t.Context())
	f := New(life, Config{Upstreams: []netip.AddrPort{at}})
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if _, err := f.Ask(t.Context(), "c", about("a."), false); err == nil {
				t.Error("an answer")
			}
		})
	}
	<-arrived
	cancel()
	waiting.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		key := keyOf(about("A."), false)
		c.put(key, &dns.Msg{Answer: []dns.RR{record("a.", "192.0.2.1", 20)}}, DefaultTTLMax, time.Now())
		for _, step := range []struct {
			after time.Duration
			ttl   uint32
			known bool
			fresh bool
		}{{0, 20, true, true}, {12 * time.Second, 8, true, true}, {9 * time.Second, staleTTL, true, false}, {staleMax, 0, false, false}} {
			time.Sleep(step.after)
			m, fresh := c.get(keyOf(about("a."), false), time.Now())
			if (m != nil) != step.known || fresh != step.fresh || m != nil && m.Answer[0].Header().Ttl != step.ttl {
				t.Errorf("after %s: %v %v", step.after, m, fresh)
			}
		}
		if c.size() != 0 || c.bytes != 0 {
			t.Errorf("%d entries, %d bytes", c.size(), c.bytes)
		}
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	c := newCache()
	large := &dns.Msg{}
	for range 100 {
		large.Answer = append(large.Answer, record("a.", "192.0.2.1", 20))
	}
	for i := range entriesMax + 100 {
		key := cacheKey{qtype: uint16(i)}
		if i%2 == 0 {
			c.put(key, large, DefaultTTLMax, time.Now())
			continue
		}
		c.put(key, &dns.Msg{}, DefaultTTLMax, time.Now())
	}
	if c.size() > entriesMax || c.bytes > bytesMax || c.size() != c.order.Len() {
		t.Errorf("%d entries, %d bytes", c.size(), c.bytes)
	}
}

func TestNegativeAnswersLiveAsTheirSOASays(t *testing.T) {
	soa := &dns.SOA{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 900}, Minttl: 7}
	if got := lifeOf(&dns.Msg{Ns: []dns.RR{soa}}); got != 7*time.Second {
		t.Errorf("%s", got)
	}
	if got := lifeOf(&dns.Msg{}); got != 0 {
		t.Errorf("%s", got)
	}
}

// TestOneClientDoesNotAskForAll: whose questions nobody answers has his share of those under way, and others go on.
func TestOneClientDoesNotAskForAll(t *testing.T) {
	arrived, ended := make(chan struct{}, 10), make(chan struct{})
	at := upstream(t, func(w dns.ResponseWriter, m *dns.Msg) {
		if strings.HasPrefix(m.Question[0].Name, "slow") {
			arrived <- struct{}{}
			<-ended
			return
		}
		reply := new(dns.Msg)
		reply.SetReply(m)
		_ = w.WriteMsg(reply)
	})
	t.Cleanup(func() { close(ended) })
	life, cancel := context.WithCancel(t.Context())
	f := New(life, Config{Upstreams: []netip.AddrPort{at}})
	f.seats = newSeats(4, 3)
	var waiting sync.WaitGroup
	for n := range 2 {
		waiting.Go(func() { _, _ = f.Ask(life, "greedy", about(fmt.Sprint("slow", n, ".")), false) })
	}
	<-arrived
	<-arrived
	if _, err := f.Ask(life, "greedy", about("fast."), false); !errors.Is(err, ErrBusy) {
		t.Errorf("a third question of one client: %v", err)
	}
	if _, err := f.Ask(life, "other", about("fast."), false); err != nil {
		t.Errorf("another client: %v", err)
	}
	cancel()
	waiting.Wait()
}
