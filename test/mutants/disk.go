package mutants

var ofDisk = []Mutant{
	{
		Name: "log-checksum-skipped", Bug: "an entry that the disk changed is applied and sent to others",
		File:   "raftstore/replica/checkedlog.go",
		Old:    `return sum == entrySum(l)`,
		New:    `return sum != 0`,
		Checks: []Check{{"raftstore/replica", "TestCheckedLogNoticesEveryChange"}},
	},
	{
		Name: "marker-not-written", Bug: "a server whose log was emptied votes as if it were new",
		File:   "raftstore/replica/marker.go",
		Old:    `	if err := m.save(); err != nil {`,
		New:    `	if err := error(nil); err != nil {`,
		Checks: []Check{{"raftstore/replica", "TestTheMarkerAlone"}},
	},
	{
		Name: "no-sync", Bug: "writes are acknowledged before they are on the disk",
		File:   "raftstore/replica/storage.go",
		Old:    `		Path: path,`,
		New:    `		Path: path, NoSync: true,`,
		Checks: []Check{{"raftstore/replica", "TestTheLogIsSynced"}},
	},
	{
		Name: "failed-disk-goes-on", Bug: "a replica whose disk fails keeps leading and stepping down",
		File:   "raftstore/replica/diskguard.go",
		Old:    "\t\tg.fail(err)\n",
		New:    "",
		Checks: []Check{{"raftstore/replica", "TestFailedDiskStopsTheReplica"}},
	},
	{
		Name: "log-keys-not-checked", Bug: "a log with a changed last key looks shorter than it is",
		File:   "raftstore/replica/boltfile/check.go",
		Old:    `	if c.last != 0 && index != c.last+1 {`,
		New:    `	if c.last != 0 && index < c.last {`,
		Checks: []Check{{"raftstore/replica/boltfile", "TestALogMustNotHaveGaps"}},
	},
	{
		Name: "gap-after-snapshot", Bug: "a log that does not join its snapshot is used",
		File:   "raftstore/replica/checkedlog.go",
		Old:    `	if first > snapshotIndex+1 {`,
		New:    `	if first > snapshotIndex+1 && last == 0 {`,
		Checks: []Check{{"raftstore/replica", "TestALogMustJoinItsSnapshot"}},
	},
	{
		Name: "older-log-used", Bug: "an old copy of the log is taken for the newest, and what it lacks is forgotten",
		File:   "raftstore/replica/watermark.go",
		Old:    `(reach < mark.Index || current < mark.Term)`,
		New:    `(reach == 0 || current < mark.Term)`,
		Checks: []Check{{"raftstore/replica", "TestALogShorterThanItWas"}},
	},
	{
		Name: "foreign-data-used", Bug: "data of another cluster is taken for one's own",
		File:   "raftstore/replica/bootstrap.go",
		Old:    `	if mark != nil && MemberName(mark.ServerID) != r.cfg.ID {`,
		New:    `	if mark != nil && mark.ServerID == "" {`,
		Checks: []Check{{"raftstore/replica", "TestDataOfOthersIsRefused"}},
	},
}
