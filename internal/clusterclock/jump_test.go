package clusterclock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAJumpWakesEachOnce whose moment has come, however much has passed; and a ticker goes on in its own rhythm.
func TestAJumpWakesEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		c := New(0)
		ticker := c.NewTicker(time.Hour)
		defer ticker.Stop()
		due := []<-chan time.Time{ticker.C()}
		for i := range 20 {
			due = append(due, c.After(time.Duration(i+2)*time.Hour))
		}
		late := c.After(2 * year)
		c.Jump(year + time.Minute)
		for i, timer := range due {
			if len(timer) != 1 {
				t.Errorf("%d was woken %d times", i, len(timer))
			}
		}
		if len(c.woken) != len(due) || len(late) > 0 || c.Ahead() != year+time.Minute {
			t.Fatal("others were woken:", len(c.woken), len(late), c.Ahead())
		}
		for _, timer := range due[1:] {
			<-timer
		}
		c.Jump(time.Minute)
		for i, timer := range due[1:] {
			if len(timer) > 0 {
				t.Errorf("%d was woken again", i+1)
			}
		}
		<-ticker.C()
		began := time.Now()
		<-ticker.C()
		if rest := time.Since(began); rest != 58*time.Minute {
			t.Error("the next tick came after", rest)
		}
	})
}

// TestAJumpCountsNoTicks: one over more ticks than could be counted ends, and the next tick comes in the ticker's own rhythm.
func TestAJumpCountsNoTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rhythm = 7 * time.Nanosecond
		c := New(0)
		began, ticker := c.Now(), c.NewTicker(rhythm)
		defer ticker.Stop()
		c.Jump(100 * 365 * 24 * time.Hour)
		<-ticker.C()
		if next := (<-ticker.C()).Sub(began); next%rhythm != 0 || c.Since(began)-next >= rhythm {
			t.Errorf("it ticks %s after it began, at %s", next, c.Since(began))
		}
	})
}
