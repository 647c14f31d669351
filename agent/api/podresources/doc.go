// Package podresources answers monitors that ask which pod has which devices (k8s.io/kubelet/pkg/apis/podresources/v1, and v1alpha1), as
// a kubelet does at pod-resources/kubelet.sock.
//
// It owns: that socket. What it tells it asks of agent/pods (which pods are active), agent/resources/devices, agent/resources/pinning and
// agent/resources/claims each time.
//
// Promises: read only; calls beyond 100 in a second are refused with ResourceExhausted, as a kubelet's. CPUs and memory are told of if
// containers have them for themselves.
//
// Tested by a client on the socket.
package podresources
