package backoff

import "time"

const (
	// First and Max bound a pause; a failure more than forgetAfter after the
	// one before starts over.
	First       = 10 * time.Second
	Max         = 5 * time.Minute
	forgetAfter = 2 * Max
)

// Backoff is the pause of one thing. The zero value has not failed yet.
type Backoff struct {
	// Longest bounds the pause; 0 means Max.
	Longest time.Duration

	delay time.Duration
	last  time.Time
}

// Delay is the pause in force, 0 before the first Next.
func (b *Backoff) Delay() time.Duration { return b.delay }

// Remaining is how long to wait at now before trying again, when the last
// failure was at failed. 0 means try.
func (b *Backoff) Remaining(failed, now time.Time) time.Duration {
	if b.delay == 0 || failed.Sub(b.last) > forgetAfter {
		return 0
	}
	return max(0, b.delay-now.Sub(failed))
}

// Next records a try at now after the failure at failed: the pause before the
// following one is twice as long.
func (b *Backoff) Next(failed, now time.Time) {
	if b.delay == 0 || failed.Sub(b.last) > forgetAfter {
		b.delay = min(First, b.longest())
	} else {
		b.delay = min(b.delay*2, b.longest())
	}
	b.last = now
}

func (b *Backoff) longest() time.Duration {
	if b.Longest == 0 {
		return Max
	}
	return b.Longest
}
