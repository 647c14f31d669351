package trust

import (
	"cmp"
	"time"
)

// What certificates are for, by Expiry.Kind.
const (
	// KindServer: of a server, to clients, to other servers and to nodes.
	KindServer = "server"
	// KindAdministrator: of the kubeconfigs in a server's trust folder.
	KindAdministrator = "administrator"
	// KindAuthority: of the cluster's authority.
	KindAuthority = "authority"
	// KindFrontProxy and KindFrontProxyAuthority: what a server shows to aggregated API servers, and who signs that.
	KindFrontProxy          = "front_proxy"
	KindFrontProxyAuthority = "front_proxy_authority"
	// KindNode: of a node, to servers.
	KindNode = "node"
	// KindBundle: the authorities by which servers judge a webhook or an aggregated API server. It ends when the last of them does.
	KindBundle = "ca_bundle"
)

// Expiry is when a certificate ends.
type Expiry struct {
	Kind string `json:"kind"`
	// Name says whose it is: a server's, a node's, or apiservice/NAME. The cluster's own authorities have none.
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
}

// String names the certificate for people: "the certificate of the node worker-1". That of a server or an administrator is its server's,
// who is not named.
func (e Expiry) String() string {
	switch e.Kind {
	case KindNode:
		return "the certificate of the node " + e.Name
	case KindBundle:
		return "the CA bundle of " + e.Name
	case KindFrontProxy:
		return "the certificate of the front proxy"
	case KindFrontProxyAuthority:
		return "the certificate of the front proxy's authority"
	}
	return "the certificate of the " + cmp.Or(e.Kind, e.Name) // servers of an older release tell no kind
}

// EndsSoon tells whether somebody should hear of it by now.
func (e Expiry) EndsSoon(now time.Time) bool {
	warning := ExpiryWarning
	if e.Kind == KindAuthority || e.Kind == KindFrontProxyAuthority {
		warning = AuthorityWarning
	}
	return e.Expires.Sub(now) < warning
}

// OfServer tells whether the certificate is one server's alone: all servers tell the same of others.
func (e Expiry) OfServer() bool {
	switch e.Kind {
	case KindNode, KindBundle, KindAuthority, KindFrontProxyAuthority:
		return false
	}
	return true
}
