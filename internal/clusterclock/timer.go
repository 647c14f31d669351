package clusterclock

import "time"

// timer fires when its clock has come to a moment. The clock's mutex guards all but the channel.
type timer struct {
	clock *Clock
	c     chan time.Time // capacity 1
	every time.Duration  // a ticker's; 0: it fires once
	at    time.Time
	real  *time.Timer // fires when the process's time alone leads to at
}

// C implements clock.Timer and clock.Ticker.
func (t *timer) C() <-chan time.Time { return t.c }

// Reset implements clock.Timer. As since Go 1.23, nothing of the time before is received after it.
func (t *timer) Reset(d time.Duration) (waited bool) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	waited = t.stop()
	now := t.clock.now()
	t.at = now.Add(d)
	t.clock.waiting[t] = struct{}{}
	t.arm(now)
	return waited
}

// Stop implements clock.Timer.
func (t *timer) Stop() (waited bool) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stop()
}

func (t *timer) stop() (waited bool) {
	_, waited = t.clock.waiting[t]
	delete(t.clock.waiting, t)
	if t.real != nil {
		t.real.Stop()
	}
	select {
	case <-t.c:
	default:
	}
	return waited
}

// arm fires the timer if its moment has come, and else sees to it that it fires then.
func (t *timer) arm(now time.Time) (fired bool) {
	if t.real != nil {
		t.real.Stop()
	}
	if fired = !t.at.After(now); fired {
		t.fire(now)
	}
	if _, waits := t.clock.waiting[t]; waits {
		t.real = time.AfterFunc(t.at.Sub(now), t.look)
	}
	return fired
}

// look is called when the process's time has led to the moment, unless the clock was advanced meanwhile.
func (t *timer) look() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if _, waits := t.clock.waiting[t]; waits {
		t.arm(t.clock.now())
	}
}

// fire sends the time. A ticker that nobody has looked at drops ticks, as time's.
func (t *timer) fire(now time.Time) {
	select {
	case t.c <- now:
	default:
	}
	if t.every == 0 {
		delete(t.clock.waiting, t)
		return
	}
	if missed := now.Sub(t.at); missed >= 0 {
		t.at = t.at.Add(missed - missed%t.every + t.every) // not one tick after the other: a jump may have passed millions
	}
}
