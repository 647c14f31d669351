package mutants

var ofSnapshot = []Mutant{
	{
		Name: "restore-forgets-sessions", Bug: "after a restore a retry finds its session unknown, or takes effect again",
		File:   "raftstore/state/restore.go",
		Old:    `s.tree, s.meta, s.digest, s.bytes, s.sessions = l.tree, l.meta, l.digest, l.bytes, l.sessions`,
		New:    `s.tree, s.meta, s.digest, s.bytes, s.sessions = l.tree, l.meta, l.digest, l.bytes, sessionTable{lastID: l.sessions.lastID}`,
		Checks: []Check{{"raftstore/state", "TestRestore"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "restore-forgets-results", Bug: "a restored session lost what it answered",
		File:   "raftstore/state/restore.go",
		Old:    "\tses.results.ReplaceOrInsert(remembered{sequence, result})\n\treturn r.Err()",
		New:    "\t_ = result\n\treturn r.Err()",
		Checks: []Check{{"raftstore/state", "TestRestore"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "revision-reused-after-restore", Bug: "the counter falls back to the newest object's revision",
		File:   "raftstore/state/restore.go",
		Old:    "\ts.begin(l.historyStart, l.history)\n",
		New:    "\tlast := uint64(0)\n\ts.tree.Ascend(func(r *Record) bool { last = max(last, r.ModRevision); return true })\n\ts.meta.revision = last\n\ts.begin(last, nil)\n",
		Checks: []Check{{"raftstore/state", "TestRestore"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "history-not-in-snapshot", Bug: "a restarted replica answers 410 to every watch",
		File:   "raftstore/state/snapshot.go",
		Old:    `history: s.ring.Tail(maxHistoryBytes),`,
		New:    `history: s.ring.Tail(0),`,
		Checks: []Check{{"raftstore/state", "TestRestoredHistoryResumesWatches"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "snapshot-checksum-skipped", Bug: "a damaged snapshot is restored",
		File:   "raftstore/state/block.go",
		Old:    `if wire.Checksum(head[:4], payload) != binary.LittleEndian.Uint32(head[4:]) {`,
		New:    `if wire.Checksum(head[:4], payload) == 0 {`,
		Checks: []Check{{"raftstore/state", "TestDamagedSnapshotIsRefused|TestForged"}},
	},
	{
		Name: "snapshot-shares-sessions", Bug: "what happens while a snapshot is written gets into it",
		File:   "raftstore/state/snapshot.go",
		Old:    `root: s.Root(), sessions: s.sessions.clone()`,
		New:    `root: s.Root(), sessions: s.sessions`,
		Checks: []Check{{"raftstore/state", "TestSnapshotIsOfItsMoment"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "previous-object-lost-in-snapshot", Bug: "restored events know nothing of the object before, so selectors misjudge them",
		File:   "raftstore/state/snapshot.go",
		Old:    `return appendReference(p, e.Prev, latest[e.Key])`,
		New:    `return appendReference(p, latest[e.Key], latest[e.Key])`,
		Checks: []Check{{"raftstore/state", "TestRestore"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "past-roots-survive-restore", Bug: "a list at a past revision comes from a history that no longer is",
		File:   "raftstore/state/restore.go",
		Old:    "\ts.past.forget()\n",
		New:    "",
		Checks: []Check{{"raftstore/state", "TestRestoreForgetsThePast"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "results-pruned-early", Bug: "a retry within the window takes effect again, and is not told that it is too old",
		File:   "raftstore/state/session.go",
		Old:    "\t\tif !ok || !ses.hasForgotten(oldest.sequence) {",
		New:    "\t\tif !ok || ses.highest < SessionWindow/4 || oldest.sequence > ses.highest-SessionWindow/4 {",
		Checks: []Check{{"raftstore/state", "TestARetryWithinTheWindowTakesEffectOnce"}},
	},
	{
		Name: "half-a-snapshot-counts", Bug: "a snapshot that failed half written counts as taken, and the log behind it is deleted",
		File:   "raftstore/replica/machine.go",
		Old:    "\tif _, err := s.snapshot.WriteTo(slow); err != nil {",
		New:    "\tif _, err := s.snapshot.WriteTo(slow); err != nil && sink == nil {",
		Checks: []Check{{"raftstore/replica", "TestAFailedSnapshotKeepsTheLog"}},
	},
}
