package clusterclock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

func nothing() error { return nil }

// got is whether the channel holds a time.
func got(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAClockGoesByItselfAndByAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := clusterclock.New(time.Hour), time.Now()
		if ahead := c.Now().Sub(began); ahead != time.Hour {
			t.Fatal("ahead by", ahead)
		}
		alone, advanced, far := c.NewTimer(time.Minute), c.NewTimer(2*time.Minute), c.NewTimer(time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !got(alone.C()) || got(advanced.C()) {
			t.Fatal("the process's time does not lead to the moment")
		}
		if err := c.Advance(time.Minute, nothing); err != nil || !got(advanced.C()) || got(far.C()) {
			t.Fatal("Advance does not lead to the moment", err)
		}
		if c.Since(began.Add(time.Hour)) != 2*time.Minute || c.Ahead() != time.Hour+time.Minute {
			t.Fatal(c.Now(), c.Ahead())
		}
		time.Sleep(58*time.Minute - time.Nanosecond)
		synctest.Wait()
		if got(far.C()) {
			t.Fatal("a timer fires before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !got(far.C()) {
			t.Fatal("a timer that Advance has brought near does not fire")
		}
	})
}

func TestATimerIsStoppedAndSetAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterclock.New(0)
		timer := c.NewTimer(time.Second)
		if !timer.Stop() || timer.Stop() {
			t.Fatal("Stop does not tell whether the timer waited")
		}
		time.Sleep(time.Minute)
		if got(timer.C()) || timer.Reset(time.Second) {
			t.Fatal("a stopped timer fires")
		}
		if err := c.Advance(time.Second, nothing); err != nil {
			t.Fatal(err)
		}
		if timer.Reset(time.Second) || got(timer.C()) {
			t.Fatal("a timer that is set anew still holds the time before")
		}
		<-timer.C()
		if got(c.After(-1)) != true {
			t.Fatal("what is past does not fire")
		}
	})
}

func TestATickerDropsWhatNobodySees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterclock.New(0)
		ticker, ticks, steps := c.NewTicker(time.Second), 0, 0
		defer ticker.Stop()
		err := c.Advance(time.Minute, func() error {
			steps++
			if c.Unseen() && got(ticker.C()) && !c.Unseen() {
				ticks++
			}
			return nil
		})
		if err != nil || steps != 30 || ticks != 30 {
			t.Fatal(err, steps, "steps,", ticks, "ticks")
		}
		began := time.Now()
		for range 3 {
			<-ticker.C()
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Fatal("three ticks took", took)
		}
	})
}

func TestWaitEndsInTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, began := clusterclock.New(time.Hour), time.Now()
		if !clusterclock.Wait(ctx, c, time.Second) || time.Since(began) != time.Second {
			t.Error("it waited", time.Since(began))
		}
		if clusterclock.Wait(ctx, c, time.Hour) || time.Since(began) != time.Minute {
			t.Error("it did not end with its context, but after", time.Since(began))
		}
	})
}

func TestAdvanceEndsWithAnErrorOfItsCaller(t *testing.T) {
	no := errors.New("no")
	if err := clusterclock.New(0).Advance(time.Hour, func() error { return no }); !errors.Is(err, no) {
		t.Fatal(err)
	}
}
