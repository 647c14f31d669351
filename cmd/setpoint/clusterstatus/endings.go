package clusterstatus

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// ending is a certificate that ends soon, or has ended.
type ending struct {
	trust.Expiry
	what string
}

func (e ending) verb(now time.Time) string {
	if e.Expires.Before(now) {
		return "ended"
	}
	return "ends"
}

// endings are the certificates that end soon by what the servers tell, each once. A node's ends when the newest does
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
			if !told || c.Expires.After(known.Expires) {
				latest[what] = ending{c, what}
			}
		}
	}
	for _, what := range order {
		if e := latest[what]; e.EndsSoon(now) {
			soon = append(soon, e)
		}
	}
	return soon
}

// remedy says where to look, or what to do.
func (e ending) remedy() string {
	switch e.Kind {
	case trust.KindNode:
		return "see the agent's log on that machine"
	case trust.KindBundle:
		return "put one there that is valid for longer"
	case trust.KindAuthority:
		return "run 'setpoint rotate ca'"
	case trust.KindFrontProxyAuthority:
		return "run 'setpoint rotate front-proxy'"
	}
	return "see the server's log"
}
