// Package upstream plays scenarios of upstream's own integration tests (k8s.io/kubernetes, test/integration) on our server.
//
// It owns the scenarios that no other test covers; docs/internals/upstream-scenarios.md has the list of all of upstream's, and where
// each is proven. `make test` runs them.
//
// One cluster in this process plays all of them at the same time, each in a namespace of its own. It has no nodes: as upstream's, a
// test plays the kubelet. They call the front door (setpoint.Start) and client-go only, and wait for what they want to see.
//
// What they promise: our API server with all its loops does what upstream's does with one of them, in upstream's own scenarios.
package upstream
