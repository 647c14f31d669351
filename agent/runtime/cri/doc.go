// Package cri declares what the node agent asks of a container runtime: the Kubernetes Container Runtime Interface
// as Go interfaces, and what both sides call by name.
//
// It owns no state. The agent's pod workers, probes, stats and streaming endpoints call a [Runtime]; the two
// implementations live in the sub-packages embedded (in-process, the default) and remote (containerd, CRI-O or any
// other CRI socket). This package may import only the published CRI modules.
//
// It promises that both implementations are exchangeable: errors carry gRPC status codes (NotFound for an unknown
// sandbox, container or image), times are nanoseconds since 1970, memory is bytes, CPU is nanoseconds. Streaming
// differs: a runtime that also implements [Streamer] carries exec, attach and port-forward in-process; for any other
// the caller proxies to the URL that Exec, Attach or PortForward return.
//
// Tested by the tests of its implementations.
package cri
