package replicas

import "time"

// wrongClock is what the clock of a machine may say on which a backup is restored: the time, years ago, before 1970, or far in the
// future. It is the one place where the store goes by a wall clock; all else goes by what passes.
func (w *World) wrongClock() time.Time {
	now := time.Now()
	clocks := []time.Time{now.AddDate(-20, 0, 0), now.AddDate(-50, 0, 0), now, now.AddDate(100, 0, 0)}
	return clocks[w.plan.Seed%uint64(len(clocks))]
}
