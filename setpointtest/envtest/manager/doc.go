// Package manager makes controller-runtime's managers fit for tests with setpointtest, bubbles included, and with setpointtest/beside.
//
//	mgr, err := ctrl.NewManager(c.RESTConfig(), manager.Options(c))
//
// It owns Options. Tests call it; it calls controller-runtime, and nothing of Setpoint but the Cluster's public methods: it links no control plane. It stands in
// the module of setpointtest/envtest, so that setpointtest itself needs no controller-runtime.
//
// Promises: a manager with these options opens no port, so that it runs in bubbles and beside others; several managers of one process
// may have controllers of the same name; it runs as the user of the Cluster's view.
//
// Tested with a manager in a bubble, in parallel, and in Explore.
package manager
