// Package claims gives pods the devices of their ResourceClaims, through the kubelet plugins of DRA drivers
// (k8s.io/kubelet/pkg/apis/dra/v1), as a kubelet does.
//
// It owns: the file dra_manager_state, which says which pods use which claims of this node and what drivers have prepared for them; the
// connections to drivers; what drivers tell of the health of devices (k8s.io/kubelet/pkg/apis/dra-health/v1). Prepare comes before a
// pod's sandbox, Given before each container, Unprepare when nothing of the pod runs. It reads ResourceClaims and deletes
// ResourceSlices; controllers and the scheduler make, allocate and reserve claims.
//
// Promises: a claim is prepared only for a pod for which it is reserved, and unprepared once, after the last pod that uses it has ended.
// What was asked of a driver is on disk before, so a new agent takes it back. Prepare and Unprepare of one claim never run at once; a
// driver that hangs delays only pods whose claims it has. The slices of a driver are deleted when its plugin is gone for 30 seconds, and
// those of all drivers when the agent starts, as upstream: whoever is there publishes anew.
//
// Tested with a driver of claimstest on sockets in a folder of the test, and in agent with a real container.
package claims
