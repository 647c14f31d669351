package cpushare

import (
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// TestWhatWaitsIsHeld: a process beside other software, below a quota or on a stolen machine holds as much of its two processors as on a
// machine of its own, and the units that it can do there are fewer.
func TestWhatWaitsIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		used  Sample // in each period of 100 ms
		busy  bool
		units float64 // of 0.1 ms, that can be done in it
	}{
		"idle":                                   {Sample{Ran: 2 * ms}, false, 0},
		"idle, others fill the machine":          {Sample{Ran: 2 * ms, Waited: 20 * ms, Worked: 200 * ms}, false, 0},
		"it fills the machine":                   {Sample{Ran: 200 * ms, Worked: 200 * ms}, true, 2000},
		"others leave it half":                   {Sample{Ran: 100 * ms, Waited: 100 * ms, Worked: 200 * ms}, true, 1000},
		"others leave it a fifth":                {Sample{Ran: 40 * ms, Waited: 160 * ms, Worked: 200 * ms}, true, 400},
		"others leave it nearly nothing":         {Sample{Ran: 2 * ms, Waited: 300 * ms, Worked: 200 * ms}, true, 200},
		"a quota of half a processor":            {Sample{Ran: 45 * ms, Processors: 0.5}, true, 500},
		"the same, and its threads are stopped":  {Sample{Ran: 50 * ms, Waited: 50 * ms, Processors: 0.5}, true, 250},
		"little of a quota":                      {Sample{Ran: 10 * ms, Processors: 0.5}, false, 0},
		"a quota of more than there is":          {Sample{Ran: 200 * ms, Processors: 2}, true, 2000},
		"half of the time is stolen":             {Sample{Ran: 100 * ms, Stolen: 100 * ms, Worked: 100 * ms}, true, 1000},
		"time is stolen from others":             {Sample{Ran: 2 * ms, Stolen: 100 * ms, Worked: 100 * ms}, false, 0},
		"a system that tells only what has run":  {Sample{Ran: 120 * ms}, true, 2000},
		"threads that waited long are gone now":  {Sample{Ran: 120 * ms, Waited: -time.Hour}, true, 2000},
		"stolen, and nothing is told of the use": {Sample{Ran: 120 * ms, Stolen: 50 * ms}, true, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			now, sum := time.Now(), Sample{Waited: 1000 * time.Hour, Processors: c.used.Processors}
			m := meter{processors: 2, looked: now, then: sum, stretch: 1}
			var units float64
			var cost time.Duration
			for range 50 {
				now = now.Add(period)
				sum.Ran += c.used.Ran
				sum.Waited += c.used.Waited
				sum.Stolen += c.used.Stolen
				sum.Worked += c.used.Worked
				units, cost = m.look(now, sum, max(unitsMin, c.used.Ran.Seconds()/unit.Seconds()), true)
			}
			if m.busy != c.busy || units < 0.95*c.units || units > 1.05*c.units {
				t.Errorf("busy: %v, and %.0f units can be done, want %.0f", m.busy, units, c.units)
			}
			if took := time.Duration(units) * cost; c.busy && (took < period*9/10 || took > period*11/10) {
				t.Errorf("they take %v", took)
			}
		})
	}
}

// TestOthersHardlyWaitBesideOtherSoftware: a machine whose processors run other software nine tenths of the time seems nearly idle by what
// a server uses. A tenant still leaves half of the places on them to others.
func TestOthersHardlyWaitBesideOtherSoftware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 2)
		m.stretch = 10
		m.attack("attacker", 500)
		time.Sleep(2 * time.Second)
		before := m.counts()["attacker"]
		if took := m.latency(t, shop); took > 20*time.Millisecond { // a hundred of its requests at once, on two processors, are 5 ms
			t.Errorf("a request of 1 ms takes %v", took)
		}
		took := time.Second + 50*ms // about, of 150 requests every 7 ms
		if part := float64(m.counts()["attacker"]-before) * (10 * unit).Seconds() / (2 * took.Seconds()); part < 0.3 || part > 0.7 {
			t.Errorf("the attacker has %.2f of the time", part)
		}
		if m.end(); m.share.stats.waited == 0 {
			t.Error("nobody waits")
		}
	})
}

// TestOthersHardlyWaitBelowAQuota: a server below a quota divides what that leaves it.
func TestOthersHardlyWaitBelowAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 1) // of 4: that is the quota
		m.share.meter.processors = 4
		m.quota = 1
		m.attack("attacker", 500)
		time.Sleep(time.Second)
		if took := m.latency(t, shop); took > 2600*time.Microsecond {
			t.Errorf("others wait %v", took)
		}
		m.end()
	})
}
