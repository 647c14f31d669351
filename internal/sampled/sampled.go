package sampled

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// Interval is how long a source is not told of again.
	Interval = 10 * time.Second
	// SourcesMax is how many sources are told apart.
	SourcesMax = 1000
	// prefixBits6 is how much of an address of IPv6 names a source: a machine has all addresses of such a net.
	prefixBits6 = 64
)

// others stands for the sources beyond SourcesMax.
const others = "others"

// Sampler chooses what is told. Its sources are any names, of addresses those by Source. The zero value is ready.
type Sampler struct {
	mu      sync.Mutex
	sources map[string]*source
}

// source is what one of them did.
type source struct {
	told    time.Time
	skipped int // since then
}

// Tell says whether to tell of what a source does now, and how much that it did was skipped since it was told of last.
func (s *Sampler) Tell(name string, now time.Time) (skipped int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sources[name]
	if known == nil {
		known = s.enter(name, now)
	}
	if !known.told.IsZero() && now.Sub(known.told) < Interval {
		known.skipped++
		return 0, false
	}
	skipped, known.skipped, known.told = known.skipped, 0, now
	return skipped, true
}

// enter makes room by forgetting those that were silent for an Interval.
func (s *Sampler) enter(name string, now time.Time) *source {
	if s.sources == nil {
		s.sources = map[string]*source{}
	}
	if len(s.sources) >= SourcesMax {
		for old, known := range s.sources {
			if now.Sub(known.told) >= Interval {
				delete(s.sources, old)
			}
		}
	}
	if len(s.sources) >= SourcesMax {
		name = others
	}
	if s.sources[name] == nil {
		s.sources[name] = &source{}
	}
	return s.sources[name]
}

// Source names the machine of an address, "host:port" or an address alone. One that cannot be read is of a source for all such.
func Source(address string) string {
	at, err := netip.ParseAddrPort(address)
	ip := at.Addr()
	if err != nil {
		if ip, err = netip.ParseAddr(address); err != nil {
			return others
		}
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	net, err := ip.Prefix(prefixBits6)
	if err != nil {
		return others
	}
	return net.String()
}
