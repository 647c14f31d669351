package term

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
	"github.com/setpoint-io/setpoint/internal/servicerange"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/server/caches"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/leader"
	"github.com/setpoint-io/setpoint/server/loops"
	"github.com/setpoint-io/setpoint/server/serverpods"
	"github.com/setpoint-io/setpoint/server/settings"
)

// Config is what a term needs of the server that leads in it.
type Config struct {
	// Self is this server as the others know it, Servers are all of them now.
	Self    trust.Server
	Servers func() []trust.Server
	// NamesOfServers are all servers whose names no node gets: the founders, whether they are still members or not, and all members.
	NamesOfServers func() []trust.Server
	// Gossiping says where each of them gossips, by its name, as far as that is known.
	Gossiping func() map[string]string
	// Elections tells of changes of leadership until ctx ends.
	Elections func(ctx context.Context) <-chan leader.Leadership
	Door      *inprocess.Door
	Caches    *caches.Caches
	Storage   *storage.Store
	// Custom and Aggregation know the kinds that are not built in, Offered are those that are.
	Custom      *crd.Catalog
	Aggregation *aggregation.Aggregator
	Offered     []*resource.Any
	// FrontProxy is how aggregated servers know this one.
	FrontProxy *aggregation.FrontProxy
	Trust      *trust.Cluster
	// NodeServing is the authority for what nodes serve with.
	NodeServing *trust.CA
	Tokens      *tokens.Issuer
	Liveness    nodelifecycle.Liveness
	// Cluster are the settings of the cluster.
	settings.Cluster
	// Port is that of the API on every server.
	Port int32
	// APIOnly leaves out the loops and the scheduler, but what upstream's API server does itself.
	APIOnly bool
	// Loops are the loops that run beside them, by their names, and "scheduler"; nil: all.
	Loops []string
	// Also run while the term lasts; what they write carries its fence.
	Also []func(ctx context.Context) error
	// ServerPods are the servers whose parts are shown as pods.
	ServerPods serverpods.Cluster
	// Numbers count what the loops do, Parts show it. Pace holds loops while the term lasts; nil holds none.
	Numbers *numbers.Ledger
	Pace    *pace.Pace
	Parts   Parts
	// Clock is the cluster's time.
	Clock  clock.WithTicker
	Logger *slog.Logger
	// Fatal ends a server that cannot do what its flags say.
	Fatal func(error)
}

// Parts are where those that only the leader runs show what they do.
type Parts struct {
	APIServer, Controllers, Scheduler Part
}

// Part is where one shows it: Actions take what it writes, Logger what it says.
type Part struct {
	Actions *actions.Log
	Logger  *slog.Logger
}

// Run acts in every term that this server leads, until ctx ends.
func Run(ctx context.Context, c Config) error {
	err := leader.Run(ctx, c.Elections(ctx), c.act)
	if errors.Is(err, leader.ErrStreamClosed) {
		return nil
	}
	return err
}

// act runs everything that only the leader does, for one term.
func (c *Config) act(ctx context.Context, term uint64) error {
	c.Logger.Info("leading", "server", c.Self.Name, "term", term)
	if err := c.Caches.CatchUp(ctx); err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("controllers wait: caches cannot catch up", "err", err)
		}
		return err
	}
	c.Pace.Begin(term)
	defer c.Pace.End()
	c.Storage.AwaitEncryption(ctx)
	config := c.Door.Config(inprocess.Server, term)
	config.Transport = loops.Tap{Next: config.Transport, Actions: c.Parts.APIServer.Actions} // the loops below write with this client
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods, ready := c.bootstrap(ctx, client, term)
	if !ready {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.publishAPI(ctx, client, servicerange.API(pods.Services)) })
	if !c.APIOnly && c.Loops == nil {
		group.Go(func() error { return c.keepServerPods(ctx, client) })
	}
	group.Go(func() error {
		c.until(ctx, "the join token", func(ctx context.Context) error {
			return jointoken.EnsureFirst(ctx, client, c.Trust.NodeToken, c.Clock.Now())
		})
		return nil
	})
	group.Go(func() error {
		return leader.Publish(ctx, leader.PublishConfig{Client: client, Server: c.Self.Name, Term: term, Clock: c.Clock, Logger: c.Logger})
	})
	self := storage.WithOrigin(ctx, storage.Origin{User: inprocess.Server.GetName(), Fence: term})
	for _, run := range c.Also {
		group.Go(func() error { return run(self) })
	}
	group.Go(func() error { return c.runControllers(ctx, term, pods) })
	if c.schedules() {
		group.Go(func() error { return c.runScheduler(ctx, term) })
	}
	return group.Wait()
}
