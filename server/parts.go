package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/internal/clip"
	names "github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/internal/sampled"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/kubernetesservice"
	"github.com/setpoint-io/setpoint/server/liveness"
	"github.com/setpoint-io/setpoint/server/parts"
	"github.com/setpoint-io/setpoint/server/serverpods"
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
	if err := a.room().check(ctx); err != nil {
		return err
	}
	return a.checkLog(ctx)
}

// noteBytesMax is how much is kept of each name in a client's request: more than any object's has.
const noteBytesMax = 256

// noteWrite adds the write of a client to the log of this server's API. Of what is refused to clients without a name one is kept now and
// then: whoever reaches the port can make as many as he likes.
func (a *api) noteWrite(who user.Info, address string, info *request.RequestInfo, code int, took time.Duration) {
	line := actions.Line{At: time.Now(), Verb: clip.Copy(info.Verb, noteBytesMax), Object: objectOf(info), Code: code, Took: took}
	if who != nil {
		line.User = clip.Copy(who.GetName(), noteBytesMax)
	}
	if line.User == user.Anonymous && code >= http.StatusBadRequest {
		source := sampled.Source(address)
		skipped, tell := a.refusals.Tell(source, line.At)
		if !tell {
			return
		}
		line.Failure = fmt.Sprintf("%d, of %s", code, source)
		if skipped > 0 {
			line.Failure += fmt.Sprintf(", which was refused %d more since the last line of it", skipped)
		}
	}
	a.config.parts.Log(names.APIServer).Add(line)
}

// objectOf is what a request is about, as in "pods/status default/web", in memory of its own.
func objectOf(info *request.RequestInfo) string {
	short := func(text string) string { return clip.Text(text, noteBytesMax) }
	object := clip.Copy(info.Resource, noteBytesMax)
	if info.Subresource != "" {
		object += "/" + short(info.Subresource)
	}
	switch {
	case info.Namespace != "" && info.Name != "":
		object += " " + short(info.Namespace) + "/" + short(info.Name)
	case info.Name != "":
		object += " " + short(info.Name)
	case info.Namespace != "":
		object += " in " + short(info.Namespace)
	}
	return object
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
