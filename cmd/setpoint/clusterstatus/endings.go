package clusterstatus

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// ending is a certificate that ends soon, or has ended.
type ending struct {
	what, remedy string
	at           time.Time
}

func (e ending) verb(now time.Time) string {
	if e.at.Before(now) {
		return "ended"
	}
	return "ends"
}

// endings are the certificates that end within trust.ExpiryWarning by what the servers tell, each once. A node's ends when the newest does
// that a server has seen: one that the node has left still knows the former.
func endings(servers []Server, now time.Time) (soon []ending) {
	latest, order := map[string]ending{}, []string(nil)
	for _, s := range servers {
		if s.Status == nil {
			continue
		}
		for _, c := range s.Status.Certificates {
			what := c.String()
			if c.OfServer() {
				what = s.Name + ": " + what
			}
			known, told := latest[what]
			if !told {
				order = append(order, what)
			}
			if !told || c.Expires.After(known.at) {
				latest[what] = ending{what, remedyOf(c), c.Expires}
			}
		}
	}
	for _, what := range order {
		if e := latest[what]; e.at.Sub(now) < trust.ExpiryWarning {
			soon = append(soon, e)
		}
	}
	return soon
}

// remedyOf says where to look.
func remedyOf(c trust.Expiry) string {
	switch c.Kind {
	case trust.KindNode:
		return "see the agent's log on that machine"
	case trust.KindBundle:
		return "put one there that is valid for longer"
	case trust.KindAuthority, trust.KindFrontProxyAuthority:
		return "make a new cluster before, and restore a backup with --new-cluster"
	}
	return "see the server's log"
}
