// Package kubectlrun runs kubectl in this process, on a cluster that a *rest.Config leads to.
//
// It owns how kubectl is told where to go, and how it ends without ending the process. setpointtest/kubectl and what-ifs call it; it calls
// k8s.io/kubectl, which is large: link it only where it is needed.
//
// Promises: commands run one at a time in a process, because kubectl keeps what it does on errors, and its printer of warnings, in
// package variables, which this package sets. It writes files in the given folder only. Commands that need a connection of their own
// (exec, attach, port-forward) fail, and none has a standard input: kubectl reads manifests from the process's.
//
// Tested by setpointtest/kubectl.
package kubectlrun
