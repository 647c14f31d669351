package trust

import "time"

const (
	// FrontProxyName is the common name of the certificate that a server shows to aggregated API servers. They
	// trust the user headers of a client with it.
	FrontProxyName = "front-proxy-client"

	frontProxyAuthority = "setpoint-front-proxy-ca"
	groupFrontProxies   = "setpoint:front-proxies"
)

// FrontProxy is the authority for the certificates by which servers prove to others that
// they pass on requests of users. It must not be the cluster's own: whoever holds any of
// its certificates could then name any user.
//
// It follows from the key of the cluster's first authority for all time: its successors change nothing.
func (ca *CA) FrontProxy() (*CA, error) {
	proxies, err := ca.founding.derive(frontProxyAuthority)
	if err != nil {
		return nil, err
	}
	return caOf([]*Authority{proxies}, proxies), nil
}

// IssueFrontProxy makes the client identity of a server towards the servers behind it;
// ca is a FrontProxy.
func (ca *CA) IssueFrontProxy(now time.Time) (*Identity, error) {
	return ca.issue(leaf{commonName: FrontProxyName, groups: []string{groupFrontProxies}, client: true}, now)
}
