package mutants

// ofRequests are walls that stand before anything of a pod runs.
var ofRequests = []Wall{
	{
		Name: "repositories-accepted", Bug: "a volume of the kind gitRepo is not refused", Page: "git-repo",
		Changes: []Change{{
			File: "internal/podfields/containers.go",
			Old:  `awsElasticBlockStore gitRepo nfs`,
			New:  `awsElasticBlockStore nfs`,
		}},
	},
	{
		Name: "fields-dropped", Bug: "a pod runs without what it asks for", Page: "refused-fields",
		Changes: []Change{{
			File: "agent/pods/refuse.go",
			Old:  `podfields.Refusals(findings)`,
			New:  `podfields.Refusals(nil)`,
		}},
	},
}
