package server

import (
	"fmt"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// identity is who this replica is, and how it proves that.
type identity struct {
	// self is this replica as the others know it.
	self trust.Server
	// keeper renews live while the server runs.
	keeper *trust.Keeper
	live   *trust.Live
	// nodeServing is the authority for what nodes serve with.
	nodeServing *trust.CA
}

func newIdentity(config Config) (*identity, error) {
	self, err := self(config)
	if err != nil {
		return nil, err
	}
	self.Services = config.PodNetwork.Services
	keeper, err := trust.NewKeeper(config.Trust, self, config.Clock, config.Logger)
	if err != nil {
		return nil, err
	}
	nodeServing, err := config.Trust.CA.NodeServing()
	if err != nil {
		return nil, err
	}
	return &identity{self: self, keeper: keeper, live: keeper.Live(), nodeServing: nodeServing}, nil
}

// self is this replica as the others know it.
func self(config Config) (trust.Server, error) {
	for _, server := range config.InitialServers {
		if server.Name == config.Name {
			return server, nil
		}
	}
	if config.AdvertiseAddress != "" {
		return trust.Server{Name: config.Name, Endpoint: config.AdvertiseAddress}, nil
	}
	return trust.Server{}, fmt.Errorf("%q is not one of the initial servers: check --name and --initial-servers", config.Name)
}
