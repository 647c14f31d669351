package cpushare

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// computer is a machine whose threads have all used what it has.
func computer(t *testing.T, processors int) *machine {
	m := newMachine(t, processors)
	m.share.turns = shares.NewTurns(shares.Limits{All: 1 << 30, Each: max(1, processors/2)})
	m.share.thread = func() time.Duration { return time.Duration(m.used.Load()) }
	return m
}

// computing begins for a tenant, and says whether it has a turn.
func computing(t *testing.T, s *Share, h shares.Holder, begin func(*Long)) (l *Long, has func() bool) {
	l = s.Long(t.Context(), h)
	begun, end := make(chan struct{}), make(chan struct{})
	go func() { // whose thread it keeps
		begin(l)
		close(begun)
		<-end
		l.End()
	}()
	t.Cleanup(func() { close(end) })
	return l, func() bool {
		synctest.Wait()
		select {
		case <-begun:
			return true
		default:
			return false
		}
	}
}

// TestATenantComputesWithHalfOfTheProcessors: the third of his on four processors waits, and another tenant does not.
func TestATenantComputesWithHalfOfTheProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := computer(t, 4)
		begin := func(h shares.Holder) bool {
			_, has := computing(t, m.share, h, (*Long).Begin)
			return has()
		}
		for n, want := range []bool{true, true, false} {
			if got := begin(shop); got != want {
				t.Errorf("%d: has a turn: %v", n, got)
			}
		}
		if !begin(shares.Holder{Name: "other"}) {
			t.Error("another tenant waits")
		}
	})
}

// TestWhoWaitsForOthersHasNoTurn: neither while an answer is written, nor where a write takes very long.
func TestWhoWaitsForOthersHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := computer(t, 1)
		first := m.share.Long(t.Context(), shop)
		first.BeginWrite()
		_, second := computing(t, m.share, shop, (*Long).Begin)
		if second() {
			t.Fatal("two compute at a time")
		}
		time.Sleep(holdMax)
		if !second() {
			t.Error("the second one still waits")
		}
		first.End()
		lone := shares.Holder{Name: "lone"}
		writer := m.share.Long(t.Context(), lone)
		writer.Begin()
		_, reader := computing(t, m.share, lone, (*Long).BeginWrite)
		writer.Outside(func() {
			if !reader() {
				t.Error("a slow client keeps the turn")
			}
			time.Sleep(holdMax)
		})
		writer.End()
	})
}

// TestComputingIsCharged: a tenant pays the time that he has used, and what others pay for a unit stays.
func TestComputingIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := computer(t, 1)
		for m.share.price.Load() == 0 { // until it knows that it is busy
			m.work(time.Millisecond)
			m.share.Charge(shop, 10)
		}
		before := m.share.cost.Load()
		ctx := context.WithValue(t.Context(), LongKey{}, m.share.Long(t.Context(), shares.Holder{Name: "greedy"}))
		done := Compute(ctx)
		for range 10 {
			m.work(100 * time.Millisecond)
			m.share.Charge(shop, 50)
		}
		done()
		Computed(ctx) // has ended
		if after := m.share.cost.Load(); after != before {
			t.Errorf("a unit costs %v, and cost %v", time.Duration(after), time.Duration(before))
		}
		m.share.mu.Lock()
		defer m.share.mu.Unlock()
		if owes := time.Until(m.share.tenants["greedy"].free); owes < 1900*time.Millisecond {
			t.Errorf("a second of one processor, of which it has half, costs %v", owes)
		}
		m.share.mu.Unlock()
		begun, next := time.Now(), m.share.Long(t.Context(), shares.Holder{Name: "greedy"})
		next.Begin()
		next.End()
		m.share.mu.Lock()
		if waited := time.Since(begun); waited != waitMax {
			t.Errorf("the next one waits %v", waited)
		}
	})
}

// TestNobodysLong: requests that never wait have none.
func TestNobodysLong(t *testing.T) {
	Compute(t.Context())()
	var none *Long
	called := false
	none.Begin()
	none.Outside(func() { called = true })
	if none.End(); !called {
		t.Error("nothing was written")
	}
}

// TestAWriterThatPanics gives its turn back once: a tenant has no turn more afterwards.
func TestAWriterThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := computer(t, 1)
		func() {
			defer func() { _ = recover() }()
			l := m.share.Long(t.Context(), shop)
			l.Begin()
			defer l.End()
			l.Outside(func() { panic("the client is gone") })
		}()
		for n, want := range []bool{true, false} {
			if _, has := computing(t, m.share, shop, (*Long).Begin); has() != want {
				t.Errorf("%d: has a turn: %v", n, !want)
			}
		}
	})
}
