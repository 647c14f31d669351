package cpushare

import "time"

const (
	// period is how often the meter looks.
	period = 100 * time.Millisecond
	// busyPart of the processors is in use when tenants begin to wait, quietPart when they no longer do. One tenant that waits keeps half
	// of them busy, so quietPart must be less.
	busyPart, quietPart = 0.5, 0.25
	// unitsMin of a period are needed to learn from it what a unit costs: otherwise it would be what the loops have spent.
	unitsMin = 20
	// A unit costs costMin to costMax. costMax is what a tenant can count on where loops keep the processors busy: with 2 of them, 1,000
	// units a second.
	costMin, costMax = time.Microsecond, time.Millisecond
	// costGuess is taken where nothing could be learnt yet.
	costGuess = 100 * time.Microsecond
	// weight is that of the last period in the mean.
	weight = 0.3
)

// meter knows how busy the process is, and what a unit costs.
type meter struct {
	used       func() time.Duration
	processors int

	looked time.Time
	then   time.Duration // what was used when it looked
	cost   float64       // of a unit, of one processor, in nanoseconds; 0: not known
	busy   bool
}

func newMeter(used func() time.Duration, processors int) meter {
	return meter{used: used, processors: processors, looked: time.Now(), then: used()}
}

// look is told of the units since the last one. It returns how many all processors could have done in that time, and how long one takes
// all of them together; or 0 while they are mostly idle. Nothing is learnt while somebody computes for long: that is charged by its time.
func (m *meter) look(now time.Time, done float64, learn bool) (units float64, cost time.Duration) {
	used := m.used()
	spent, all := float64(used-m.then), float64(now.Sub(m.looked))*float64(m.processors)
	switch {
	case learn && done >= unitsMin:
		m.learn(spent / done)
	case !learn && m.cost == 0:
		m.cost = float64(costGuess)
	}
	part := busyPart
	if m.busy {
		part = quietPart
	}
	m.busy = spent > part*all
	m.looked, m.then = now, used
	if !m.busy || m.cost == 0 {
		return 0, 0
	}
	return all / m.cost, time.Duration(m.cost / float64(m.processors))
}

func (m *meter) learn(cost float64) {
	cost = min(max(cost, float64(costMin)), float64(costMax))
	if m.cost == 0 {
		m.cost = cost
	}
	m.cost += weight * (cost - m.cost)
}
