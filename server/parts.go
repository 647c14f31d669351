package server

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/controllers/kubernetesservice"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/serverpods"
	names "github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/liveness"
	"github.com/setpoint-io/setpoint/server/parts"
	"github.com/setpoint-io/setpoint/server/term"
)

// partChecks tell how the parts of this server are. The loops of one that does not lead could act as soon as its store and API do.
func (a *api) partChecks() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		names.APIServer: a.checkServes, names.ControllerManager: a.checkServes, names.Scheduler: a.checkServes, names.Store: a.checkStore,
	}
}

// checkServes fails while this server should not be asked.
func (a *api) checkServes(ctx context.Context) error {
	if err := a.config.drain.Check(ctx); err != nil {
		return err
	}
	return a.check(ctx)
}

// checkStore fails while this replica cannot follow the log.
func (a *api) checkStore(ctx context.Context) error {
	if err := a.room().Check(ctx); err != nil {
		return err
	}
	return a.checkLog(ctx)
}

// noteWrite adds the write of a client to the log of this server's API.
func (a *api) noteWrite(who user.Info, info *request.RequestInfo, code int, took time.Duration) {
	line := actions.Line{At: time.Now(), Verb: info.Verb, Object: info.Resource, Code: code, Took: took}
	if who != nil {
		line.User = who.GetName()
	}
	if info.Subresource != "" {
		line.Object += "/" + info.Subresource
	}
	switch {
	case info.Namespace != "" && info.Name != "":
		line.Object += " " + info.Namespace + "/" + info.Name
	case info.Name != "":
		line.Object += " " + info.Name
	case info.Namespace != "":
		line.Object += " in " + info.Namespace
	}
	a.config.parts.Log(names.APIServer).Add(line)
}

// termParts are where the loops of this server show what they do.
func (s *Server) termParts() term.Parts {
	part := func(name string) term.Part {
		return term.Part{Actions: s.parts.Log(name), Logger: s.parts.Logger(name)}
	}
	return term.Parts{APIServer: part(names.APIServer), Controllers: part(names.ControllerManager), Scheduler: part(names.Scheduler)}
}

// noteLeadership says in the logs of the loops whether they act here.
func (s *Server) noteLeadership(change raftstore.Leadership) {
	text := "stands by: no server leads"
	switch leader := raftstore.MemberName(s.log.Status().LeaderID); {
	case change.Leader:
		text = fmt.Sprintf("acts: server %s leads in term %d", s.config.Name, change.Term)
	case leader != "" && leader != s.config.Name:
		text = fmt.Sprintf("stands by: server %s leads in term %d", leader, change.Term)
	}
	for _, part := range []string{names.ControllerManager, names.Scheduler} {
		s.parts.Log(part).Note(time.Now(), text)
	}
}

// serverPods tells the loop of the pods of servers about these. Only the leader asks.
func (s *Server) serverPods() serverpods.Cluster {
	return serverpods.Cluster{
		Members: func() (all []string) {
			for _, member := range s.clusterServers() {
				all = append(all, member.Name)
			}
			return all
		},
		Ask: s.askServer,
	}
}

func (s *Server) askServer(ctx context.Context, name string) serverpods.Server {
	server := serverpods.Server{Name: name, Leads: name == s.config.Name}
	for _, member := range s.clusterServers() {
		if member.Name == name {
			server.Voter, server.Address = member.Voter, addressOf(member)
		}
	}
	report := parts.Report{}
	if server.Leads {
		report = s.parts.Report(ctx)
	} else {
		report, server.Err = s.api.remote.Report(ctx, name)
	}
	server.Version, server.StartedAt, server.Troubles = report.Version, report.StartedAt, report.Troubles
	return server
}

func addressOf(server liveness.Server) string {
	return kubernetesservice.Address(kubernetesservice.Server{Endpoint: server.Endpoint, Addresses: server.Addresses})
}
