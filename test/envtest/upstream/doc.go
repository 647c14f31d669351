// Package upstream pins Kubernetes' own kube-apiserver and etcd, as envtest starts them, so that
// test/envtest/compare.sh can compile and measure them. It is a module of its own: they need packages that nothing
// else here does.
package upstream
