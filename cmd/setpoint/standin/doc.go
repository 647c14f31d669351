// Package standin answers as the etcd, kube-apiserver and kubectl that envtest starts.
//
// It owns the names by which the binary is called then, the flags that envtest and its users give, and the folder of
// links for KUBEBUILDER_ASSETS. cmd/setpoint calls it before it looks at its own commands; it calls the root package
// for a cluster in memory.
//
// Promises: the API is there before /healthz says ok; clients are known by certificates of --client-ca-file; a flag
// that nothing comes of is named on standard error; the process ends with SIGTERM, or when its parent has died. etcd
// is a health endpoint and nothing more, since the API server keeps its own store.
//
// Tested here by what it makes of flags, and in test/envtest with controller-runtime's own envtest.
package standin
