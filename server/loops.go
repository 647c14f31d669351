package server

import (
	"context"

	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/server/leader"
	"github.com/setpoint-io/setpoint/server/term"
)

// LoopsWithout are the names for Config.Loops of all control loops but some, which there must be.
func LoopsWithout(names ...string) ([]string, error) { return term.LoopsWithout(names...) }

// runLoops fills the caches and acts in every term that this server leads.
func (s *Server) runLoops(ctx context.Context) {
	api := s.api
	api.caches.StartWithContext(ctx)
	s.wg.Go(func() {
		<-ctx.Done()
		api.caches.Shutdown()
	})
	for _, run := range []func(context.Context){
		api.access.Run, api.rotations.Run, api.atRest.Run, api.atRest.Inspect, api.aggregation.Run, api.custom.Run, api.usage.Run,
	} {
		s.wg.Go(func() { run(ctx) })
	}
	config := term.Config{
		Self: s.identity.self, Servers: s.servers, NamesOfServers: api.namesOfServers, Gossiping: s.liveness.Gossiping,
		Elections: s.elections, Door: api.door, Caches: api.caches, Storage: api.storage,
		Custom: api.custom, Aggregation: api.aggregation, Offered: api.offered, FrontProxy: api.frontProxy,
		Trust: s.config.Trust, NodeServing: s.identity.nodeServing, Tokens: api.access.Issuer, Liveness: s.alive(),
		Cluster: s.config.Cluster, Port: DefaultPort, APIOnly: s.config.APIOnly, Loops: s.config.Loops,
		Also:       s.loopsOfAPI(),
		ServerPods: s.serverPods(), Parts: s.termParts(),
		Numbers: api.numbers, Pace: s.config.Pace, Clock: s.config.Clock, Logger: s.config.Logger, Fatal: s.config.Fatal,
	}
	s.wg.Go(func() { term.CheckPodNetwork(ctx, config) })
	s.wg.Go(func() {
		if err := term.Run(ctx, config); err != nil {
			s.config.Fatal(err)
		}
	})
}

// loopsOfAPI are what the API does while this server leads. The counting of quotas whose limits are new is, upstream, a control loop beside
// the API server, so that it is left out with those; the first write that is charged counts then.
func (s *Server) loopsOfAPI() []func(context.Context) error {
	run := []func(context.Context) error{s.api.rotations.Lead, s.api.atRest.Rewrite, s.api.typeChecker.Run}
	if !s.config.APIOnly {
		run = append(run, s.api.quota.Keep)
	}
	return run
}

// Informers are those of this server's loops, with the store's own objects, which nobody may change. They run as long as the server does.
func (s *Server) Informers() informers.SharedInformerFactory {
	return s.api.caches.SharedInformerFactory
}

// Busy says whether a client of this process waits for an answer of this server, or a loop on it has something to do. While this server
// leads and its loops have not been begun, they have.
func (s *Server) Busy() bool {
	log := s.log.Leadership()
	begins := log.Leader && s.api.numbers.Term() != log.Term
	return begins || s.api.door.Busy() || s.api.numbers.Busy(s.config.Pace.Held)
}

// alive is who says which nodes are alive.
func (s *Server) alive() nodelifecycle.Liveness {
	if s.config.Liveness != nil {
		return s.config.Liveness
	}
	return s.liveness
}

// elections tells the loops of elections in their own words.
func (s *Server) elections(ctx context.Context) <-chan leader.Leadership {
	out := make(chan leader.Leadership)
	s.wg.Go(func() {
		defer close(out)
		for change := range s.log.LeadershipChanges(ctx) {
			s.noteLeadership(change)
			select {
			case out <- leader.Leadership{Leader: change.Leader, Term: change.Term}:
			case <-ctx.Done():
				return
			}
		}
	})
	return out
}
