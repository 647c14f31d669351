package clusterclock

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAJumpWakesInOrder of their moments, each once, however much has passed; and a ticker goes on in its own rhythm.
func TestAJumpWakesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		c := New(0)
		ticker := c.NewTicker(time.Hour)
		defer ticker.Stop()
		want := []<-chan time.Time{ticker.C()}
		for i := range 20 { // a map has no order: of so many it is hardly ever the right one by chance
			want = append(want, c.After(time.Duration(i+2)*time.Hour))
		}
		late := c.After(2 * year)
		c.Jump(year + time.Minute)
		var woken []<-chan time.Time
		for _, timer := range c.woken {
			woken = append(woken, timer.c)
		}
		if !slices.Equal(woken, want) || len(late) > 0 || c.Ahead() != year+time.Minute {
			t.Fatal("woken in another order, or others:", len(woken), len(late), c.Ahead())
		}
		<-ticker.C()
		began := time.Now()
		<-ticker.C()
		if rest := time.Since(began); rest != 59*time.Minute {
			t.Error("the next tick came after", rest)
		}
	})
}
