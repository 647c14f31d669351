// Package beside is a whole Kubernetes control plane for one test, in a process beside it.
//
//	import setpointtest "github.com/setpoint-io/setpoint/setpointtest/beside"
//
//	func TestShop(t *testing.T) {
//		c := setpointtest.Start(t, setpointtest.Config{CRDs: []string{"../config/crd"}, Nodes: 3})
//		mgr, _ := ctrl.NewManager(c.RESTConfig(), manager.Options(c))
//		shop.SetupWithManager(mgr)
//		c.Run(mgr)
//		c.Apply("testdata/shop.yaml")
//		c.Eventually("deployment/shop", setpointtest.Available)
//	}
//
// It is package setpointtest without the control plane: names and meanings are the same, so that one changed import moves a test from
// one to the other, and the test binary is as small as the program under test. `setpoint testserver` runs the clusters. It is started
// once, serves the tests of all packages, and ends when nobody has used it for a minute. The binary is the one that
// SETPOINT_TEST_BINARY names, the module's tool (go mod edit -tool github.com/setpoint-io/setpoint/cmd/setpoint, then go mod tidy), the
// one in PATH, or one that the go command builds.
//
// What needs the control plane in the test's process is in setpointtest alone: bubbles of testing/synctest, faults, watches that are held
// or dropped, Explore and Find, servers that crash and their leader, Clock, Wait, NoWritesWhenQuiet, Trace, Dump, Config.DataDir and
// Config.Logger.
//
// Promises: a cluster ends with its test, and with the test's process, however that ends. Nothing of it is left in the process, goroutines
// included: those of connections end a moment after the test. A mistake in using it, and a server that was killed or does not answer, fail
// the test at the line of the caller, with one sentence.
//
// It calls internal/testlink, which finds the server, and internal/testclient, which setpointtest shares. It links no control plane
// (TestLight). The methods of a Cluster belong to the test's goroutine, as t.Fatal does. What RESTConfig returns may be used anywhere.
// Tested with the test's own binary as the server, by processes that fail, exit, lose it and count their goroutines.
package beside
