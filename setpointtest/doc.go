// Package setpointtest is a whole Kubernetes control plane inside one test.
//
//	func TestShop(t *testing.T) {
//		c := setpointtest.Start(t, setpointtest.Config{CRDs: []string{"../config/crd"}, Nodes: 3})
//		mgr, _ := ctrl.NewManager(c.RESTConfig(), manager.Options(c)) // setpointtest/envtest/manager
//		shop.SetupWithManager(mgr)
//		c.Run(mgr)
//		c.Apply("testdata/shop.yaml")
//		c.Eventually("deployment/shop", setpointtest.Available)
//	}
//
// It owns what a test needs beside the cluster: clients, waiting, forks, faults, what to say when it fails. Tests
// of operators and controllers call it. It calls the root package, which runs the cluster in memory: no files, no
// port, no TLS, unless the test asks for a port. internal/testclient is what both packages ask of a cluster.
//
// Package setpointtest/beside is the same in a process beside the test, without linking the control plane.
//
// Promises: everything has ended when the test ends, goroutines included. A mistake in using it fails the test at
// the line of the caller, with one sentence that says what to do. Nothing is shared between clusters. Inside a
// testing/synctest bubble the whole cluster runs in the bubble's time, and one whose time stands still, because a
// goroutine waits for the network, ends the process within a minute or so and says which, where, and what to do.
//
// The methods of a Cluster belong to the test's goroutine, as t.Fatal does. What RESTConfig returns may be used
// anywhere. Tested by its Examples, by itself in bubbles and outside, and in test/clients with controller-runtime.
package setpointtest
