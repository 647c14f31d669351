package cpushare

import (
	"cmp"
	"time"
)

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
	// stretchMax is how much longer a unit takes at most where other software has the processors: a tenant can count on a tenth of what it
	// could on its own machine.
	stretchMax = 10
)

// meter knows how busy the process is, and what a unit costs.
type meter struct {
	processors int // unless a sample knows better

	looked  time.Time
	then    Sample
	cost    float64 // of a unit, of one processor, in nanoseconds; 0: not known
	stretch float64 // for how long a place on a processor is held, where it runs for 1
	busy    bool
}

func newMeter(first Sample, processors int) meter {
	return meter{processors: processors, looked: time.Now(), then: first, stretch: 1}
}

// look is told of the units since the last one. It returns how many all processors could have done in that time, and how long one takes
// all of them together; or 0 while they are mostly idle. Nothing is learnt while somebody computes for long: that is charged by its time.
func (m *meter) look(now time.Time, sample Sample, done float64, learn bool) (units float64, cost time.Duration) {
	ran, held := sample.since(m.then)
	processors := cmp.Or(sample.Processors, float64(m.processors))
	all := float64(now.Sub(m.looked)) * processors
	switch {
	case learn && done >= unitsMin:
		m.learn(float64(ran) / done)
	case !learn && m.cost == 0:
		m.cost = float64(costGuess)
	}
	if ran > 0 {
		m.stretch += weight * (min(float64(held)/float64(ran), stretchMax) - m.stretch)
	}
	part := busyPart
	if m.busy {
		part = quietPart
	}
	m.busy = float64(held) > part*all
	m.looked, m.then = now, sample
	if !m.busy || m.cost == 0 {
		return 0, 0
	}
	each := m.cost * m.stretch
	return all / each, time.Duration(each / processors)
}

func (m *meter) learn(cost float64) {
	cost = min(max(cost, float64(costMin)), float64(costMax))
	if m.cost == 0 {
		m.cost = cost
	}
	m.cost += weight * (cost - m.cost)
}
