// Package clusterdns has the names by which the parts of a cluster agree on its DNS.
//
// It owns: the Service and the label by which it says that nodes serve it, and the ConfigMap that configures it; its address is
// internal/servicerange's. By these names the Service is kept, nodes serve and may read the ConfigMap, and `setpoint net trace`
// asks as pods do.
//
// It promises nothing beyond that: they are constants.
package clusterdns

// All of them are upstream's but for ProxyName. Service and ConfigMap are in the namespace kube-system.
const (
	// Service is upstream's name of it, whatever serves it.
	Service = "kube-dns"
	// ProxyLabel says that others than the proxies of Services serve a Service; ProxyName is its value where nodes answer themselves.
	ProxyLabel = "service.kubernetes.io/service-proxy-name"
	ProxyName  = "setpoint-dns"
	// ConfigMap has the Corefile, under ConfigKey.
	ConfigMap = "coredns"
	ConfigKey = "Corefile"
)
