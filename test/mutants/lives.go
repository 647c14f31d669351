package mutants

var ofLives = []Mutant{
	{
		Name: "committed-end-cleared", Bug: "a server throws away what it knows to be committed because a leader lacks it",
		File:   "raftstore/replica/checkedlog.go",
		Old:    `high >= c.last.Load() && low <= mark`,
		New:    `high >= c.last.Load() && mark == 0`,
		Checks: []Check{{"raftstore", "TestCommittedEntriesAreNotCleared"}},
	},
	{
		Name: "mark-of-this-run-only", Bug: "a server started again does not know what it knew to be committed",
		File:   "raftstore/replica/watermark.go",
		Old:    "\tknown := r.watermark.Load()\n",
		New:    "\tknown := uint64(0)\n",
		Checks: []Check{{"raftstore", "TestCommittedEntriesAreNotCleared"}},
	},
	{
		Name: "removed-member-waited-for", Bug: "the leader waits for a member that was removed until it leads no more",
		File:   "raftstore/replica/transport/absence.go",
		Old:    ` && t.isMember(string(id))`,
		New:    ``,
		Checks: []Check{{"raftstore/replica/transport", "TestARemovedMemberIsNotWaitedFor"}},
	},
	{
		Name: "other-life-answered", Bug: "a server of another life votes and replicates with those of this one",
		File:   "raftstore/replica/life.go",
		Old:    `	case life == "" || g.Life == "" || g.Life == life:`,
		New:    `	case life == "" || g.Life == "" || g.Life != g.FormerLife:`,
		Checks: []Check{{"raftstore", "TestTwoRestoresAreTwoLives"}},
	},
	{
		Name: "restored-by-a-constant", Bug: "a second restore gives out the first one's revisions again",
		File:   "raftstore/replica/birth/birth.go",
		Old:    `	return max(last+RevisionGap, since1970(begins, time.Microsecond))`,
		New:    `	return last + RevisionGap`,
		Checks: []Check{{"raftstore", "TestTwoRestoresAreTwoLives"}},
	},
	{
		Name: "restored-server-votes-again", Bug: "a server that was restored anew forgets that it has voted",
		File:   "raftstore/founding.go",
		Old:    `		if status.Founders[cfg.Name] == b.Nonce {`,
		New:    `		if status.Founders[cfg.Name] != "" {`,
		Checks: []Check{{"raftstore", "TestWhoFoundsAndWhoWaits|TestAServerRestoredAnewVotesUnderANewID"}},
	},
	{
		Name: "founded-beside-a-restore", Bug: "empty servers found a cluster of their own while a restored one is there",
		File:   "raftstore/founding.go",
		Old:    `	case len(a.restored) > 0:`,
		New:    `	case len(a.restored) > len(peers):`,
		Checks: []Check{{"raftstore", "TestWhoFoundsAndWhoWaits"}},
	},
	{
		Name: "former-life-goes-on", Bug: "after a recovery the servers of the former life go on apart",
		File:   "raftstore/replica/life.go",
		Old:    `	case g.FormerLife == life:`,
		New:    `	case g.FormerLife == life && g.To == "":`,
		Checks: []Check{{"raftstore", "TestARecoveryEndsTheFormerLife"}},
	},
	{
		Name: "life-not-in-the-marker", Bug: "a server that is started alone does not know its life",
		File:   "raftstore/replica/life.go",
		Old:    `	if root.Life == "" || r.marked().Life == root.Life {`,
		New:    `	if root.Life != "-" {`,
		Checks: []Check{{"raftstore", "TestAClusterOfAnOlderReleaseGetsALife"}},
	},
	{
		Name: "health-asks-the-store", Bug: "a server without a majority does not say that it lives",
		File: "apiserver/discovery/handler.go",
		Old: `	case "healthz", "livez", "readyz":
		h.health.serve(w, request, path)`,
		New: `	case "healthz", "livez", "readyz":
		if _, err := h.current(request.Context()); err == nil {
			h.health.serve(w, request, path)
		} else {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}`,
		Checks: []Check{{"apiserver/discovery", "TestHealthDoesNotWaitForTheStore"}},
	},
}
