package liveness

import (
	"slices"

	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/rotation"
)

// authorities implements session.ServiceConfig.Authorities.
func (l *Liveness) authorities(node string) (pem []byte, hashes []string) {
	if l.config.Authority == nil || l.config.Follows != nil && !l.config.Follows() || l.isRevoked(node) {
		return nil, nil
	}
	return l.config.Authority.CertPEM(), l.config.Authority.Ring().IDs()
}

// LackingAuthorities are the nodes with a session at this server whose agents do not believe the authorities that it believes, or have
// certificates of another than the one that signs; and those that do and have, by name.
func (l *Liveness) LackingAuthorities() (lacking []rotation.Lacking, sure []string) {
	wanted := l.config.Authority.Ring().IDs()
	for _, r := range l.sessions.Reports() {
		switch {
		case l.isRevoked(r.Node):
		case r.Garbled:
			lacking = append(lacking, rotation.Lacking{Node: r.Node, Garbled: true})
		case len(r.Authorities) == 0:
			lacking = append(lacking, rotation.Lacking{Node: r.Node, TooOld: true})
		case r.Told, !session.SameAuthorities(r.Authorities, wanted):
			lacking = append(lacking, rotation.Lacking{Node: r.Node})
		default:
			sure = append(sure, r.Node)
		}
	}
	return bounded(lacking), slices.Compact(sure)
}

// IsRevoked reports whether a node was shut out.
func (l *Liveness) IsRevoked(node string) bool { return l.isRevoked(node) }
