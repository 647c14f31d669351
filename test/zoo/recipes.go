package main

import "time"

// recipes are the suites. One comes in when its packages have compiled and run.
var recipes = []recipe{
	{
		name: "controller-runtime", module: "sigs.k8s.io/controller-runtime", version: "v0.25.2",
		packages: []string{"pkg/client", "pkg/cache", "pkg/manager", "pkg/webhook"}, atLeast: 773,
	},
	{
		name: "flux-ssa", module: "github.com/fluxcd/pkg/ssa", version: "v0.78.0",
		packages: []string{".", "jsondiff"}, atLeast: 256,
	},
	{
		name: "jobset", module: "sigs.k8s.io/jobset", version: "v0.10.1",
		packages: []string{"test/integration/controller", "test/integration/webhook"}, atLeast: 78,
	},
	{
		name: "karpenter", module: "sigs.k8s.io/karpenter", version: "v1.14.0",
		packages: []string{
			"pkg/apis/v1", "pkg/controllers/nodepool/hash", "pkg/controllers/node/health", "pkg/controllers/node/termination",
			"pkg/controllers/nodeclaim/lifecycle",
		}, atLeast: 318,
	},
	{
		name: "kro", module: "github.com/kubernetes-sigs/kro", version: "v0.9.4",
		packages: []string{"test/integration/suites/core"}, atLeast: 146, limit: 20 * time.Minute,
	},
	{
		name: "trust-manager", module: "github.com/cert-manager/trust-manager", version: "v0.25.0",
		packages: []string{"test/integration/bundle", "test/integration/clusterbundle"}, atLeast: 166,
	},
}
