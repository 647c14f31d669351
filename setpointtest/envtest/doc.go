// Package envtest takes the place of controller-runtime's package of that name: a suite changes one import.
//
//	import "github.com/setpoint-io/setpoint/setpointtest/envtest" // was sigs.k8s.io/controller-runtime/pkg/envtest
//
// It owns Environment and ControlPlane, which run the control plane in this process and in memory, with a port of
// loopback: nothing is downloaded, and no process is started. All else is controller-runtime's own: CRDs, webhooks,
// users and kubeconfigs have its types and its code. Suites call it; it calls cmd/setpoint/standin, which honours the
// flags of APIServer.Configure.
//
// Promises: fields and methods mean what they mean there, or are answered with one line on standard error or in
// controller-runtime's log. Like there the API is alone, unless SETPOINT_ENVTEST_LOOPS=all. Everything has ended when
// Stop returns. There is no etcd: ControlPlane.Etcd is empty.
//
// Tested by a suite that changes one import, and in test/envtest by controller-runtime's own suites.
package envtest
