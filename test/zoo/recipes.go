package main

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
		name: "trust-manager", module: "github.com/cert-manager/trust-manager", version: "v0.25.0",
		packages: []string{"test/integration/bundle", "test/integration/clusterbundle"}, atLeast: 166,
	},
}
