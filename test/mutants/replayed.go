package mutants

// ofReplayed are bugs that the simulation with raft finds by one of its inputs alone.
var ofReplayed = []Mutant{
	{
		Name:   "stale-word-of-a-slow-write",
		Bug:    "a leader that is told of a slow write which has ended does not look at the next ones for five seconds",
		File:   "raftstore/slowdisk.go",
		Old:    `if s.stepAside() && !s.sleep(stepAsidePause) {`,
		New:    `if s.stepAside(); !s.sleep(stepAsidePause) {`,
		Checks: []Check{{"test/simulation/replicas", "TestPaused"}},
	},
	{
		Name: "restored-by-the-clock", Bug: "a restore on a machine whose clock is wrong gives out revisions again",
		File:   "raftstore/replica/birth/birth.go",
		Old:    "\treturn max(last+RevisionGap, since1970(begins, time.Microsecond))",
		New:    "\treturn since1970(begins, time.Microsecond)",
		Checks: []Check{{"test/simulation/replicas", "TestReplicas"}},
	},
	{
		Name: "restored-where-it-ended", Bug: "a restored cluster goes on where the backup ended, so it gives out revisions that were told",
		File:   "raftstore/replica/birth/birth.go",
		Old:    "\treturn max(last+RevisionGap, since1970(begins, time.Microsecond))",
		New:    "\treturn max(last+1, min(last+1, since1970(begins, time.Microsecond)))",
		Checks: []Check{{"test/simulation/replicas", "TestReplicas"}},
	},
	{
		Name: "former-life-revived", Bug: "a server that comes back with the directory of a former life takes part in the next",
		File:   "raftstore/replica/life.go",
		Old:    `	case life == "" || g.Life == "" || g.Life == life:`,
		New:    `	case life == "" || g.Life == "" || g.Life != g.FormerLife:`,
		Checks: []Check{{"test/simulation/replicas", "TestReplicas"}},
	},
}
