// Package remote speaks CRI to a runtime of its own process: containerd, CRI-O, or anything else that serves the CRI
// on a unix socket.
//
// It owns the two gRPC connections (runtime and image service). cmd and the agent's wiring call it when a
// container-runtime-endpoint is configured; it may call only the published CRI client. It promises the semantics of
// package cri and adds none: calls block until the runtime answers or the context ends. Tested against an in-process
// gRPC server.
package remote
