package server

import (
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// newRotations makes this server follow what is rotated, beginning with what it knows.
func (a *api) newRotations(client kubernetes.Interface, peer func(name, address string) (*http.Client, string)) *rotations.Rotations {
	keeper := a.config.identity.keeper
	return rotations.New(rotations.Config{
		Name: a.config.Name, Servers: a.config.servers, Ask: admin.AskHeld(peer),
		Life:    func() string { return a.config.log.Root().Life },
		Storage: a.storage, Client: client, Locker: trust.Locker{CA: a.config.Trust.CA}, Clock: a.config.Clock, Logger: a.config.Logger,
		Mechanisms: map[rotation.Kind]rotations.Mechanism{
			rotation.Serving:    &rotations.Certificates{Issued: keeper.Issued, Renew: keeper.Renew, Now: time.Now},
			rotation.AccountKey: rotations.KeyRing{Ring: a.config.Trust.AccountKeys, Make: trust.MakeAccountKey},
		},
	})
}
