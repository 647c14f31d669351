package network

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

const manyServices = 10_000

// BenchmarkServices: 10,000 Services with two endpoints each: all of them anew, and one endpoint of one of them.
func BenchmarkServices(b *testing.B) {
	needRoot(b)
	translation := NewTranslation(TranslationConfig{})
	b.Cleanup(func() { check(b, translation.Replace(nil)) })
	all := make([]Service, manyServices)
	for i := range all {
		all[i] = numbered(i, 0)
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			check(b, translation.Replace(all))
		}
	})
	b.Run("one", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			check(b, translation.Change([]Service{numbered(n%manyServices, n/manyServices+1)}, nil))
		}
	})
}

// numbered has another second endpoint in each round.
func numbered(i, round int) Service {
	at := func(network, number uint32) netip.Addr {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, network<<24|number)))
	}
	return Service{
		ServiceAddress: ServiceAddress{6, netip.AddrPortFrom(at(10, 96<<16|uint32(i)), 80)},
		Endpoints: []netip.AddrPort{
			netip.AddrPortFrom(at(11, uint32(i)), 80), netip.AddrPortFrom(at(12, uint32(i)), uint16(8000+round)),
		},
	}
}
