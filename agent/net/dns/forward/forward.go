package forward

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/singleflight"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// Limits of a Forwarder.
const (
	// flightsMax is how many questions are asked at a time, flightsEach how many that one client asked first.
	flightsMax, flightsEach = 1000, 250
	// tryTimeout is of one server, answerTimeout of all of them: resolvers of pods wait 5 s.
	tryTimeout    = 2 * time.Second
	answerTimeout = 4500 * time.Millisecond
	// staleAfter is how long a client waits for something newer than an answer that has run out.
	staleAfter = 1800 * time.Millisecond
	// upstreamsMax is upstream's limit of servers, triesMax how many of them are asked about one question.
	upstreamsMax = 15
	triesMax     = 3
	// payloadBytes is what a server may send by UDP: more is cut on its way.
	payloadBytes = 1232
)

// Errors of Ask.
var (
	ErrBusy        = errors.New("too many questions are under way")
	ErrNoUpstreams = errors.New("no server is known to ask")
	errOther       = errors.New("an answer to another question")
)

// Config of a Forwarder. The zero value asks nobody.
type Config struct {
	// Upstreams are asked in this order; the one that answered last is asked first.
	Upstreams []netip.AddrPort
	// TTLMax bounds how long answers are kept; 0: DefaultTTLMax.
	TTLMax time.Duration
	// ForceTCP asks by TCP only.
	ForceTCP bool
	// Counts is told of what happens; nil is allowed.
	Counts *Counts
}

// DefaultTTLMax is how long an answer is kept at most.
const DefaultTTLMax = 30 * time.Second

// Counts are of all questions so far.
type Counts struct {
	Hits, Misses, Stale, Asked, Failed, Busy atomic.Int64
}

// Forwarder asks upstream servers. Its methods may be called from several goroutines.
type Forwarder struct {
	life    context.Context // of what is asked for several clients
	config  Config
	cache   *cache
	flights singleflight.Group
	seats   *shares.Places
	good    atomic.Int32 // which upstream answered last
}

// New returns one with an empty cache. What is under way ends with life.
func New(life context.Context, c Config) *Forwarder {
	c.Upstreams = c.Upstreams[:min(len(c.Upstreams), upstreamsMax)]
	if c.TTLMax == 0 {
		c.TTLMax = DefaultTTLMax
	}
	if c.Counts == nil {
		c.Counts = &Counts{}
	}
	return &Forwarder{life: life, config: c, cache: newCache(), seats: newSeats(flightsMax, flightsEach)}
}

func newSeats(all, each int) *shares.Places {
	return shares.New("questions under way", shares.Limits{All: all, Each: each})
}

// Ask answers a client from the cache or from a server. Clients share what is asked at a time. The message is the caller's own:
// it has no header of the client's question. checked asks for signatures too.
func (f *Forwarder) Ask(ctx context.Context, client string, q dns.Question, checked bool) (*dns.Msg, error) {
	key := keyOf(q, checked)
	known, fresh := f.cache.get(key, time.Now())
	if fresh {
		f.config.Counts.Hits.Add(1)
		return known, nil
	}
	f.config.Counts.Misses.Add(1)
	patience := answerTimeout
	if known != nil {
		patience = staleAfter
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result := f.flights.DoChan(key.String(), func() (any, error) { return f.refresh(client, key, q, checked) })
	select {
	case got := <-result:
		if got.Err == nil {
			return got.Val.(*dns.Msg).Copy(), nil
		}
		return f.orStale(known, got.Err)
	case <-ctx.Done():
		return f.orStale(known, fmt.Errorf("ask about %s: %w", q.Name, ctx.Err()))
	}
}

func (f *Forwarder) orStale(known *dns.Msg, err error) (*dns.Msg, error) {
	if known == nil {
		return nil, err
	}
	f.config.Counts.Stale.Add(1)
	return known, nil
}

// refresh asks for all that wait, and keeps the answer.
func (f *Forwarder) refresh(client string, key cacheKey, q dns.Question, checked bool) (*dns.Msg, error) {
	leave, err := f.seats.Enter(shares.Holder{Name: "client " + client})
	if err != nil {
		f.config.Counts.Busy.Add(1)
		return nil, ErrBusy
	}
	defer leave()
	ctx, cancel := context.WithTimeout(f.life, answerTimeout)
	defer cancel()
	got, err := f.ask(ctx, q, checked)
	if err != nil {
		f.config.Counts.Failed.Add(1)
		return nil, err
	}
	f.cache.put(key, got, f.config.TTLMax, time.Now())
	return got, nil
}

// ask tries servers until one knows an answer, even if it is that there is none.
func (f *Forwarder) ask(ctx context.Context, q dns.Question, checked bool) (*dns.Msg, error) {
	count := len(f.config.Upstreams)
	if count == 0 {
		return nil, ErrNoUpstreams
	}
	first := int(f.good.Load())
	var failed []error
	for i := range min(count, triesMax) {
		at := (first + i) % count
		upstream := f.config.Upstreams[at].String()
		got, err := f.exchange(ctx, upstream, q, checked)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", upstream, err))
		case got.Rcode == dns.RcodeServerFailure || got.Rcode == dns.RcodeRefused || got.Rcode == dns.RcodeNotImplemented:
			failed = append(failed, fmt.Errorf("%s: %s", upstream, dns.RcodeToString[got.Rcode]))
		default:
			f.good.Store(int32(at))
			return got, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failed...)
}

func (f *Forwarder) exchange(ctx context.Context, upstream string, q dns.Question, checked bool) (*dns.Msg, error) {
	f.config.Counts.Asked.Add(1)
	m := new(dns.Msg)
	m.Id, m.RecursionDesired, m.Question = dns.Id(), true, []dns.Question{q}
	m.SetEdns0(payloadBytes, checked)
	protocol := "udp"
	if f.config.ForceTCP {
		protocol = "tcp"
	}
	got, err := exchange(ctx, protocol, upstream, m)
	if err == nil && got.Truncated && protocol == "udp" {
		return exchange(ctx, "tcp", upstream, m)
	}
	return got, err
}

func exchange(ctx context.Context, protocol, upstream string, m *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: protocol, Timeout: tryTimeout, UDPSize: payloadBytes}
	conn, err := client.DialContext(ctx, upstream)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	got, _, err := client.ExchangeWithConnContext(ctx, m, conn)
	if err != nil {
		return nil, err
	}
	if len(got.Question) != 1 || !sameQuestion(got.Question[0], m.Question[0]) {
		return nil, errOther
	}
	return got, nil
}

func sameQuestion(a, b dns.Question) bool {
	return a.Qtype == b.Qtype && a.Qclass == b.Qclass && strings.EqualFold(a.Name, b.Name)
}

// Looped asks every server about a name that only this process knows. Those are returned whose question came back: seen counts.
func (f *Forwarder) Looped(ctx context.Context, name string, seen func() int64) []netip.AddrPort {
	var looped []netip.AddrPort
	for _, upstream := range f.config.Upstreams {
		before := seen()
		_, _ = f.exchange(ctx, upstream.String(), dns.Question{Name: name, Qtype: dns.TypeHINFO, Qclass: dns.ClassINET}, false)
		if seen() > before {
			looped = append(looped, upstream)
		}
	}
	return looped
}
