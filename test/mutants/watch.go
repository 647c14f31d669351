package mutants

var ofWatch = []Mutant{
	{
		Name: "watch-drops-an-event", Bug: "after a full batch the cursor jumps to the end",
		File:   "raftstore/watch/watcher.go",
		Old:    "\tif len(revisions) == 0 {\n\t\tcursor = max",
		New:    "\t{\n\t\tcursor = max",
		Checks: []Check{{"raftstore/watch", "TestBatchIsBounded|TestManyAtOnce"}},
	},
	{
		Name: "watch-repeats-an-event", Bug: "the event at the cursor is delivered again",
		File:   "raftstore/watch/group.go",
		Old:    `all[i] > revision`,
		New:    `all[i] >= revision`,
		Checks: []Check{{"raftstore/watch", "TestPrefixes|TestStart|TestWatchersSee"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "progress-ahead", Bug: "progress runs ahead of an event that was not delivered",
		File:   "raftstore/watch/watcher.go",
		Old:    `return revision - 1`,
		New:    `return revision`,
		Checks: []Check{{"raftstore/watch", "."}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "overtaken-goes-on", Bug: "a watcher that was overtaken silently misses what it lost",
		File:   "raftstore/watch/watcher.go",
		Old:    `	if w.epoch != w.ring.epoch || cursor < w.group.lost {`,
		New:    `	if w.epoch != w.ring.epoch {`,
		Checks: []Check{{"raftstore/watch", "TestOvertaken|TestReset"}, {"test/simulation", "TestSimulation"}},
	},
	{
		Name: "compacted-start-accepted", Bug: "a watch from a revision that left the ring starts with a gap",
		File:   "raftstore/watch/watcher.go",
		Old:    `	if after < r.compacted {`,
		New:    `	if after+1 < r.compacted {`,
		Checks: []Check{{"raftstore/watch", "."}},
	},
	{
		Name: "old-epoch-goes-on", Bug: "a watcher from a future that was undone goes on",
		File:   "raftstore/watch/ring.go",
		Old:    `	if last < r.last {`,
		New:    `	if last > r.last {`,
		Checks: []Check{{"raftstore/watch", "TestReset"}},
	},
	{
		Name: "sibling-folder-wakes-nobody", Bug: "a change below the folder wakes only the watchers of everything",
		File:   "raftstore/watch/ring.go",
		Old:    `		end += next + 1`,
		New:    `		end += len(key) - end`,
		Checks: []Check{{"raftstore/watch", "TestPrefixes|TestNextWaits"}},
	},
	{
		Name: "events-before-their-root", Bug: "who sees an event does not find its object in the root",
		File:   "raftstore/state/state.go",
		Old:    "\ts.publish.Lock()\n\ts.root.Store(root)\n\tif s.entry.restart {",
		New:    "\ts.publish.Lock()\n\tdefer s.root.Store(root)\n\tif s.entry.restart {",
		Checks: []Check{{"raftstore/state", "."}},
	},
}
