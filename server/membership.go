package server

import (
	"slices"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/liveness"
)

// clusterServers are the members of the log, at the operator's address where the
// list has one, in the log's order; those of the list before the log is known.
func (s *Server) clusterServers() []liveness.Server {
	members := s.log.Servers()
	if len(members) == 0 {
		for _, initial := range s.config.InitialServers {
			members = append(
				members,
				raftstore.ServerStatus{Server: raftstore.Server{ID: initial.Name, Address: initial.Endpoint}, Voter: true},
			)
		}
	}
	var servers []liveness.Server
	for _, member := range members {
		server := liveness.Server{
			Server: trust.Server{Name: raftstore.MemberName(member.ID), Endpoint: member.Address},
			Voter:  member.Voter, Told: member.Address,
		}
		at := slices.IndexFunc(servers, func(other liveness.Server) bool { return other.Name == server.Name })
		if at >= 0 { // two lives of one server
			servers[at].Voter = servers[at].Voter || server.Voter
			continue
		}
		for _, initial := range s.config.InitialServers {
			if initial.Name == server.Name {
				server.Server = initial
			}
		}
		servers = append(servers, server)
	}
	return servers
}

// servers are all replicas now and where they are.
func (s *Server) servers() []trust.Server {
	var servers []trust.Server
	for _, member := range s.clusterServers() {
		servers = append(servers, member.Server)
	}
	return servers
}
