package trust

import (
	"crypto/x509"
	"slices"
	"strings"
)

// formerGroupServers is what earlier versions called GroupServers. It lay outside "system:", so a rule such as "no system: groups" for the
// users of an issuer missed it. Certificates of servers say both as long as servers and agents of these versions may have to believe them.
const formerGroupServers = "setpoint:servers"

// ReservedGroup reports whether a group stands for the servers: nobody gets it from a token, an issuer or by acting as another.
func ReservedGroup(group string) bool { return group == GroupServers || group == formerGroupServers }

// saysServer reports whether a certificate of the cluster's authority is a server's.
func saysServer(certificate *x509.Certificate) bool {
	subject := certificate.Subject
	return strings.HasPrefix(subject.CommonName, serverPrefix) && slices.ContainsFunc(subject.Organization, ReservedGroup)
}

// IsServer reports whether a verified chain is that of a server of this authority's cluster.
func (ca *CA) IsServer(chain []*x509.Certificate) bool {
	return len(chain) > 1 && saysServer(chain[0]) && ca.current().believes(chain[len(chain)-1])
}
