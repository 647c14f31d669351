// Package kubectl runs kubectl in the test's process on a cluster of setpointtest: no program, no port, no kubeconfig.
//
//	kubectl.Run(t, c, "rollout", "restart", "deployment/shop")
//
// It is a package of its own because kubectl is large: tests that do not import it do not link it. Tests call it; it calls
// k8s.io/kubectl, the same version as `setpoint kubectl`.
//
// Promises: the user, the namespace and the faults are those of the Cluster that it is given, and bubbles work. It writes
// files in the test's temporary folder only. Commands run one at a time in a process, because kubectl keeps what it does
// on errors, and its printer of warnings, in package variables, which this package sets. Commands that need a connection
// of their own (exec, attach, port-forward) fail: use Cluster.Kubeconfig and kubectl itself.
//
// Tested by its Example and in a bubble.
package kubectl
