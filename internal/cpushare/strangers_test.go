package cpushare

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// strangers keeps so many requests under way, each next one of whom name says.
func (m *machine) strangers(what string, requests int, name func() string) {
	count := &atomic.Int64{}
	m.answered[what] = count
	for range requests {
		m.wg.Go(func() {
			for h := shares.Stranger(name()); m.ctx.Err() == nil; h = shares.Stranger(name()) {
				if m.ask(m.ctx, h) == nil {
					count.Add(1)
				}
			}
		})
	}
}

// TestStrangersHaveOneShare: strangers of however many addresses have together what one tenant has, also if each asks only once. A known
// tenant has as much beside them, and others hardly wait.
func TestStrangersHaveOneShare(t *testing.T) {
	var next atomic.Int64
	for what, name := range map[string]func() string{
		"a thousand addresses":    func() string { return fmt.Sprint(next.Add(1) % 1000) },
		"an address each time":    func() string { return fmt.Sprint(next.Add(1)) },
		"two addresses":           func() string { return fmt.Sprint(next.Add(1) % 2) },
		"ten thousand of a cloud": func() string { return fmt.Sprint(next.Add(1) % 10_000) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, 2)
				m.strangers("strangers", 200, name)
				m.attack("anna", 50)
				time.Sleep(2 * time.Second)
				before := m.counts()
				time.Sleep(4 * time.Second)
				part := func(name string) float64 { return float64(m.counts()[name]-before[name]) * unit.Seconds() / (2 * 4) }
				if strangers, anna := part("strangers"), part("anna"); strangers > 0.37 || anna < 0.27 {
					t.Errorf("strangers have %.2f of the time, anna %.2f", strangers, anna)
				}
				if took := m.latency(t, shop); took > 6*time.Millisecond {
					t.Errorf("others wait %v", took)
				}
				m.end()
			})
		})
	}
}

// TestOneStrangerLeavesHalf of what strangers have: another one comes in beside his flood. While only he keeps the processors busy, he has
// more now and then: they are mostly idle.
func TestOneStrangerLeavesHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 2)
		m.strangers("flood", 100, func() string { return "192.0.2.7" })
		time.Sleep(2 * time.Second)
		before := m.counts()
		time.Sleep(4 * time.Second)
		if part := float64(m.counts()["flood"]-before["flood"]) * unit.Seconds() / (2 * 4); part < 0.2 || part > 0.55 {
			t.Errorf("it has %.2f of the time", part)
		}
		if took := m.latency(t, shares.Stranger("192.0.2.8")); took > 10*time.Millisecond {
			t.Errorf("another stranger waits %v", took)
		}
		m.end()
	})
}
