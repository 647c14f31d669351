package main

// recipes are the suites. One comes in when its packages have compiled and run.
var recipes = []recipe{
	{
		name: "flux-ssa", module: "github.com/fluxcd/pkg/ssa", version: "v0.78.0",
		packages: []string{".", "jsondiff"}, atLeast: 256,
	},
}
