package server

import (
	"slices"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/expiry"
)

// certificates are those of expiries, once the API is built.
func (a *api) certificates() []trust.Expiry { return a.expiries().All() }

// expiries tell when the certificates end that this server uses or knows.
func (a *api) expiries() expiry.Known {
	return expiry.Known{Storage: a.storage, Nodes: a.access.NodeKeys.Expiries, Own: func() []trust.Expiry {
		id := a.config.identity
		return slices.Concat(id.keeper.Expiries(), a.frontProxy.Expiries(id.self.Name))
	}}
}
