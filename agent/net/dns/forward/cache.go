package forward

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Limits of the cache.
const (
	entriesMax = 10_000
	bytesMax   = 4 << 20
	// entryOverhead is what an entry costs beside its message, in bytes.
	entryOverhead = 256
	// ttlMin keeps answers that say 0, or nothing.
	ttlMin = 5 * time.Second
	// staleMax is how long an answer that has run out is better than none, staleTTL what clients are told then, in seconds.
	staleMax = time.Hour
	staleTTL = 30
)

// cacheKey is what answers depend on.
type cacheKey struct {
	name    string
	qtype   uint16
	qclass  uint16
	checked bool
}

func keyOf(q dns.Question, checked bool) cacheKey {
	return cacheKey{strings.ToLower(q.Name), q.Qtype, q.Qclass, checked}
}

// String is the key of flights.
func (k cacheKey) String() string {
	text := k.name + " " + dns.Type(k.qtype).String() + " " + dns.Class(k.qclass).String()
	if k.checked {
		text += " DO"
	}
	return text
}

// entry is a message as it came, in bytes: it takes a fraction of what the decoded one takes.
type entry struct {
	key    cacheKey
	packed []byte
	since  time.Time
	until  time.Time
}

func (e *entry) cost() int { return len(e.packed) + len(e.key.name) + entryOverhead }

// cache forgets what was not asked for longest. mu guards all.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	order   *list.List // of *entry; the front was asked for last
	bytes   int
}

func newCache() *cache { return &cache{entries: map[cacheKey]*list.Element{}, order: list.New()} }

// get returns a copy with the times that are left; fresh says that they are not over.
func (c *cache) get(key cacheKey, now time.Time) (m *dns.Msg, fresh bool) {
	c.mu.Lock()
	element := c.entries[key]
	if element == nil {
		c.mu.Unlock()
		return nil, false
	}
	e := element.Value.(*entry)
	if now.After(e.until.Add(staleMax)) {
		c.drop(element)
		c.mu.Unlock()
		return nil, false
	}
	c.order.MoveToFront(element)
	c.mu.Unlock()
	m = new(dns.Msg)
	if err := m.Unpack(e.packed); err != nil {
		return nil, false
	}
	if fresh = now.Before(e.until); fresh {
		setTTLs(m, func(ttl uint32) uint32 { return left(ttl, e, now) })
	} else {
		setTTLs(m, func(uint32) uint32 { return staleTTL })
	}
	return m, fresh
}

// left is what is left of a record's time, and never more than of the whole answer's.
func left(ttl uint32, e *entry, now time.Time) uint32 {
	age, rest := uint32(now.Sub(e.since).Seconds()), uint32(e.until.Sub(now).Seconds())
	return min(ttl-min(ttl, age), rest)
}

func setTTLs(m *dns.Msg, ttl func(uint32) uint32) {
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, record := range section {
			if h := record.Header(); h.Rrtype != dns.TypeOPT {
				h.Ttl = ttl(h.Ttl)
			}
		}
	}
}

// put keeps an answer for as long as it says, within ttlMin and ttlMax.
func (c *cache) put(key cacheKey, m *dns.Msg, ttlMax time.Duration, now time.Time) {
	packed, err := m.Pack()
	if err != nil {
		return
	}
	e := &entry{key, packed, now, now.Add(min(max(lifeOf(m), ttlMin), ttlMax))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[key]; old != nil {
		c.drop(old)
	}
	c.entries[key] = c.order.PushFront(e)
	c.bytes += e.cost()
	for len(c.entries) > entriesMax || c.bytes > bytesMax {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(element *list.Element) {
	e := c.order.Remove(element).(*entry)
	delete(c.entries, e.key)
	c.bytes -= e.cost()
}

func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// lifeOf is the shortest time to live of an answer; of one without records, what its SOA says of such answers.
func lifeOf(m *dns.Msg) time.Duration {
	records := m.Answer
	if len(records) == 0 {
		records = m.Ns
	}
	seconds := uint32(0)
	for i, record := range records {
		ttl := record.Header().Ttl
		if soa, ok := record.(*dns.SOA); ok && len(m.Answer) == 0 {
			ttl = min(ttl, soa.Minttl)
		}
		if i == 0 || ttl < seconds {
			seconds = ttl
		}
	}
	return time.Duration(seconds) * time.Second
}

// CacheEntries is how many answers are kept.
func (f *Forwarder) CacheEntries() int { return f.cache.size() }
