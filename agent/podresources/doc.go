// Package podresources answers monitors that ask which pod has which devices (k8s.io/kubelet/pkg/apis/podresources/v1, and v1alpha1), as
// a kubelet does at pod-resources/kubelet.sock.
//
// It owns: that socket. Called by: agent.Run. What it tells it asks of agent/pods (which pods are active), agent/devices and
// agent/claims each time.
//
// Promises: read only; calls beyond 100 in a second are refused with ResourceExhausted, as a kubelet's. No CPUs and no memory are
// told of: the policies of the CPU and the memory manager are none, so no container has any for itself.
//
// Tested by a client on the socket.
package podresources
