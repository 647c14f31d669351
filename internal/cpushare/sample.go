package cpushare

import "time"

// Sample is what a process has had so far of the processors of its machine, and what it wanted more. The times only grow, but for those of
// threads that end. What a system does not tell is 0.
type Sample struct {
	// Ran is how long threads of the process have run. Waited is how long they could have and did not: somebody else's ran, or a quota
	// was used up.
	Ran, Waited time.Duration
	// Stolen is how long a virtual machine's processors were away while they had something to do, and Worked how long they worked, for
	// whomever.
	Stolen, Worked time.Duration
	// Processors are how many the process may use at a time, not always a whole number; 0: as many as Go uses.
	Processors float64
}

// since is how long threads ran after the sample then, and how long they held a place on a processor for it: while they waited for it,
// nobody else of this process used that place either. Of what was stolen the process has the part that it has of the work.
func (s Sample) since(then Sample) (ran, held time.Duration) {
	ran = max(0, s.Ran-then.Ran)
	held = ran + max(0, s.Waited-then.Waited)
	if worked, stolen := s.Worked-then.Worked, s.Stolen-then.Stolen; worked > 0 && stolen > 0 {
		held += time.Duration(min(1, float64(ran)/float64(worked)) * float64(stolen))
	}
	return ran, held
}
