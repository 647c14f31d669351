// Package kubeletapi answers on the kubelet's port: logs, exec, attach,
// port-forward, connections to pods, pods, stats, metrics, health, local volumes.
//
// It owns: the HTTP server of one agent and the samples behind its rates, which are taken while somebody asks for them. Its
// clients are the API servers, and programs that read a node's metrics. It may call: CRI, the pod list in Config, and the
// runtime's log files.
//
// Promises: whom kubeletapi/access lets in is served, and nobody else; streams
// end with their container, with their client, or with ctx; a runtime without in-process streams is proxied.
// A server is connected to addresses of this node's pods only, never to the node's own. Exec and attach speak
// SPDY and WebSocket up to v4.channel.k8s.io; v5 is the API server's to translate.
//
// Tested over httptest with client-go's remotecommand and port-forward.
package kubeletapi
