package gossip

import (
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// RevokedBy is Config.Revoked by a judge; nil revokes nobody.
func RevokedBy(judge *revocation.Judge) func(role Role, name string) error {
	return func(role Role, name string) error {
		user := trust.NodeUser(name)
		if role == RoleServer {
			user = trust.ServerUser(name)
		}
		return judge.Revoked(revocation.Identity{User: user})
	}
}
