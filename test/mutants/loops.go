package mutants

var ofLoops = []Mutant{
	{
		Name: "growth-beside-surplus", Bug: "a ReplicaSet grows while another has more pods than it asks for",
		File:   "controllers/deployment/plan.go",
		Old:    " || rs.Status.Replicas > replicasOf(rs.Spec.Replicas)",
		New:    "",
		Checks: []Check{{"controllers/deployment", "GrowthWaits"}},
	},
	{
		Name: "growth-beside-the-unobserved", Bug: "a ReplicaSet grows while the controller of another has not seen that it shrank",
		File:   "controllers/deployment/plan.go",
		Old:    "rs.Status.ObservedGeneration < rs.Generation || ",
		New:    "",
		Checks: []Check{{"controllers/deployment", "GrowthWaits"}},
	},
	{
		Name: "status-before-the-rollout", Bug: "the status of a Deployment does not count the pods that its pass asks for as unavailable",
		File:   "controllers/deployment/status.go",
		Old:    "range r.planned()",
		New:    "range r.all()",
		Checks: []Check{{"controllers/deployment", "StatusShows"}, {"test/rolloutstatus", "TooEarly"}},
	},
	{
		Name: "creation-without-an-answer-is-none", Bug: "a creation that timed out is taken for one that was refused, and made again",
		File:   "controllers/reconcile/expect/slowstart.go",
		Old:    "\t\t\t\te.doubt(owner)\n",
		New:    "",
		Checks: []Check{{"controllers/reconcile/expect", "WithoutAnAnswer"}},
	},
	{
		Name: "live-list-is-forgotten", Bug: "what the API listed is not expected of the cache, so that an old cache counts again",
		File:   "controllers/reconcile/expect/live.go",
		Old:    "\t\tx.awaited[p.UID] = true\n",
		New:    "\t\t_ = p\n",
		Checks: []Check{{"controllers/reconcile/expect", "Live"}},
	},
}
