package cpushare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// machine has processors that requests hold for their cost, in the order in which they came, as goroutines do.
type machine struct {
	share *Share
	turns chan struct{}
	used  atomic.Int64
	// stretch is how long work takes where it takes 1 on a machine without other software.
	stretch time.Duration
	waited  atomic.Int64
	quota   float64
	// answered are the requests of each holder.
	answered map[string]*atomic.Int64
	// ctx ends with end, and what runs with it.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// unit is what a unit takes of a processor.
const unit = 100 * time.Microsecond

func newMachine(t *testing.T, processors int) *machine {
	m := &machine{turns: make(chan struct{}, processors), stretch: 1, answered: map[string]*atomic.Int64{}}
	m.ctx, m.cancel = context.WithCancel(t.Context())
	m.share = New(func() Sample {
		return Sample{Ran: time.Duration(m.used.Load()), Waited: time.Duration(m.waited.Load()), Processors: m.quota}
	})
	m.share.meter.processors = processors
	return m
}

func (m *machine) end() {
	m.cancel()
	m.wg.Wait()
}

// work takes a processor.
func (m *machine) work(cost time.Duration) {
	m.turns <- struct{}{}
	time.Sleep(cost * m.stretch)
	m.used.Add(int64(cost))
	m.waited.Add(int64(cost * (m.stretch - 1)))
	<-m.turns
}

func (m *machine) ask(ctx context.Context, h shares.Holder) error {
	if err := m.share.Wait(ctx, h, 1); err != nil {
		return err
	}
	m.work(unit)
	return nil
}

// attack keeps so many requests of a tenant under way until the end.
func (m *machine) attack(name string, requests int) {
	count := &atomic.Int64{}
	m.answered[name] = count
	for range requests {
		m.wg.Go(func() {
			for m.ctx.Err() == nil {
				if m.ask(m.ctx, shares.Holder{Name: name}) == nil {
					count.Add(1)
				}
			}
		})
	}
}

// latency is what 99 of 100 requests of h take that come every 7 ms in a second.
func (m *machine) latency(t *testing.T, h shares.Holder) time.Duration {
	var took []time.Duration
	for range 150 {
		begun := time.Now()
		if err := m.ask(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
		time.Sleep(7 * time.Millisecond)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

var (
	shop  = shares.Holder{Name: "namespace shop"}
	admin = shares.Holder{Name: "user admin", Privileged: true}
)

// TestOthersHardlyWait: however many requests some tenants have under way, those of others and of administrators take little longer.
func TestOthersHardlyWait(t *testing.T) {
	for _, c := range []struct {
		processors, tenants, requests int
		most                          time.Duration
	}{
		{1, 1, 8, 2600 * time.Microsecond},
		{1, 1, 500, 2600 * time.Microsecond},
		{2, 1, 500, 2600 * time.Microsecond},
		{16, 1, 2000, 2600 * time.Microsecond},
		{2, 3, 500, 4 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, c.processors)
				for n := range c.tenants {
					m.attack(fmt.Sprint("attacker ", n), c.requests)
				}
				time.Sleep(time.Second) // until it is known what a unit costs
				for _, h := range []shares.Holder{shop, admin} {
					if took := m.latency(t, h); took > c.most {
						t.Errorf("%s waits %v", h.Name, took)
					}
				}
				m.end()
			})
		})
	}
}

// TestShareOfTheProcessors: one tenant gets half of the time, two get a third each, and the rest is free.
func TestShareOfTheProcessors(t *testing.T) {
	for tenants := range 4 {
		t.Run(fmt.Sprint(tenants+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, 2)
				for n := range tenants + 1 {
					m.attack(fmt.Sprint(n), 100)
				}
				time.Sleep(2 * time.Second)
				before := m.counts()
				time.Sleep(10 * time.Second)
				for name, count := range m.counts() {
					part := float64(count-before[name]) * unit.Seconds() / (2 * 10)
					if want := 1 / float64(tenants+2); part < 0.8*want || part > 1.1*want {
						t.Errorf("%s has %.2f of the time, want about %.2f", name, part, want)
					}
				}
				m.end()
			})
		})
	}
}

func (m *machine) counts() map[string]int64 {
	counts := map[string]int64{}
	for name, count := range m.answered {
		counts[name] = count.Load()
	}
	return counts
}

// TestNobodyWaitsWhileThereIsTime: a tenant below its share, or whoever asks while the processors are idle, goes on at once.
func TestNobodyWaitsWhileThereIsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 2)
		for range 2000 { // a tenth of the processors
			if took := m.latency1(t, shop); took != unit {
				t.Fatalf("waited %v", took-unit)
			}
			time.Sleep(400 * time.Microsecond)
		}
		if m.share.stats.waited != 0 || m.share.price.Load() != 0 {
			t.Errorf("%d waited, the price is %v", m.share.stats.waited, m.share.price.Load())
		}
	})
}

func (m *machine) latency1(t *testing.T, h shares.Holder) time.Duration {
	begun := time.Now()
	if err := m.ask(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// TestTheRushEnds: when the attack is over the price goes, and nothing is kept of the tenants.
func TestTheRushEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 1)
		m.attack("attacker", 50)
		time.Sleep(time.Second)
		m.end()
		for range 4 {
			time.Sleep(period)
			_ = m.ask(t.Context(), admin)
		}
		if len(m.share.tenants) != 0 || m.share.price.Load() != 0 || m.share.stats.tenants != 0 {
			t.Errorf("left: %d tenants, price %v, %d waiting", len(m.share.tenants), m.share.price.Load(), m.share.stats.tenants)
		}
	})
}

// TestBusyLoopsLeaveTenantsSomething: where the loops take all the time, a tenant has the least rate, and no debt from before.
func TestBusyLoopsLeaveTenantsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 2)
		m.wg.Go(func() {
			for m.ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
				m.used.Add(int64(20 * time.Millisecond))
			}
		})
		m.attack("operator", 20)
		time.Sleep(2 * time.Second)
		before := m.counts()["operator"]
		time.Sleep(10 * time.Second)
		if rate := (m.counts()["operator"] - before) / 10; rate < 900 {
			t.Errorf("%d requests a second", rate)
		}
		m.end()
	})
}

// busy has tenants wait for longer than they may.
func busy() *Share {
	s := New(func() Sample { return Sample{} })
	s.due.Store(int64(time.Hour)) // the price stays
	s.price.Store(int64(time.Millisecond))
	return s
}

// TestWhoWouldWaitTooLong is refused, with the reason, and not before others have had time.
func TestWhoWouldWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy()
		s.Charge(shop, 5000)
		begun := time.Now()
		err := s.Wait(t.Context(), shop, 1)
		var refused *BusyError
		if !errors.As(err, &refused) || time.Since(begun) != waitMax {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if want := "the processors of this server are busy, and namespace shop uses its share of them, one part of 2"; err.Error() != want {
			t.Errorf("it says: %s", err)
		}
		if err := s.Wait(t.Context(), admin, 1); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Wait(gone, shop, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("who is gone: %v", err)
		}
		if left := s.tenants[shop.Name].waiting; left != 0 {
			t.Errorf("%d wait", left)
		}
	})
}

// TestTooManyWait: what they hold is bounded.
func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy()
		s.Charge(shop, 100)
		for range waitingMax {
			go func() { _ = s.Wait(t.Context(), shop, 0.01) }()
		}
		synctest.Wait()
		begun := time.Now()
		var refused *BusyError
		if err := s.Wait(t.Context(), shop, 0.01); !errors.As(err, &refused) || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if err := s.Wait(t.Context(), shares.Holder{Name: "other"}, 1); err != nil {
			t.Errorf("another tenant: %v", err)
		}
	})
}

// TestTooManyTenantsWait: all of them together are bounded too.
func TestTooManyTenantsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy()
		for n := range waitingAllMax {
			h := shares.Holder{Name: fmt.Sprint(n % 5)}
			s.Charge(h, 100)
			go func() { _ = s.Wait(t.Context(), h, 0.01) }()
		}
		synctest.Wait()
		s.Charge(shop, 100)
		var refused *BusyError
		if err := s.Wait(t.Context(), shop, 0.01); !errors.As(err, &refused) {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(waitMax)
		synctest.Wait()
		if s.waiting != 0 {
			t.Errorf("%d wait", s.waiting)
		}
	})
}

// TestYoungConnectionsComeIn: what a connection brings first waits for a short time, also beside a flood from its address.
func TestYoungConnectionsComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy()
		s.Charge(shop, 1e6)
		begun := time.Now()
		if s.Read(shop, 1, true); time.Since(begun) != youngMax {
			t.Errorf("it waits %v", time.Since(begun))
		}
		if s.Read(admin, 1<<20, false); time.Since(begun) != youngMax || s.units.Load() != 1e9 {
			t.Errorf("an administrator waits, or is counted: %v, %d", time.Since(begun), s.units.Load())
		}
	})
}

func BenchmarkWait(b *testing.B) {
	s := New(Process())
	for b.Loop() {
		_ = s.Wait(b.Context(), shop, 1)
		s.Charge(shop, 0.1)
	}
}

// TestFloodBelowRequests: a connection that never asks for anything, and keeps a processor busy with what it sends, is read only as
// fast as its tenant's share is.
func TestFloodBelowRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 2)
		for range 8 {
			m.wg.Go(func() {
				for m.ctx.Err() == nil {
					m.share.Read(shares.Stranger("192.0.2.7"), 4*unitBytes, false)
					m.work(4 * unit)
				}
			})
		}
		time.Sleep(2 * time.Second)
		before := m.used.Load()
		time.Sleep(10 * time.Second)
		if part := time.Duration(m.used.Load()-before).Seconds() / (2 * 10); part < 0.2 || part > 0.55 {
			t.Errorf("it has %.2f of the time", part)
		}
		if took := m.latency(t, shop); took > 3*time.Millisecond {
			t.Errorf("others wait %v", took)
		}
		m.end()
	})
}

// TestDebtIsForgotten: whoever has used far too much may go on after debtMax, and one read never takes longer than waitMax.
func TestDebtIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy()
		s.Charge(shop, 1e6)
		begun := time.Now()
		s.Read(shop, 1, false)
		if took := time.Since(begun); took != waitMax {
			t.Errorf("a read took %v", took)
		}
		time.Sleep(debtMax)
		if err := s.Wait(t.Context(), shop, 1); err != nil || time.Since(begun) != waitMax+debtMax {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}
