package setpoint

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"k8s.io/apiserver/pkg/authentication/user"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/apiservice"
	crdcontroller "github.com/setpoint-io/setpoint/controllers/crd"
	"github.com/setpoint-io/setpoint/controllers/leader"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/scheduler"
)

// loops are the control loops of one server: caches that are always warm, and
// controllers that act while the server leads.
type loops struct {
	server *Server
	caches *caches
}

// runLoops fills the caches and acts in every term that this server leads.
func (s *Server) runLoops(ctx context.Context) error {
	l := &loops{server: s, caches: s.caches}
	l.caches.StartWithContext(ctx)
	s.wg.Go(func() { s.access.run(ctx) })
	s.wg.Go(func() {
		<-ctx.Done()
		l.caches.Shutdown()
	})
	s.wg.Go(func() { s.aggregation.Run(ctx) })
	s.wg.Go(func() {
		if err := s.custom.Run(ctx); err != nil {
			s.config.Fatal(err)
		}
	})
	s.wg.Go(func() {
		err := leader.Run(ctx, leaderships(ctx, s), l.act)
		if err != nil && !errors.Is(err, leader.ErrStreamClosed) {
			s.config.Fatal(err)
		}
	})
	return nil
}

// leaderships tells the loops of elections in their own words.
func leaderships(ctx context.Context, s *Server) <-chan leader.Leadership {
	out := make(chan leader.Leadership)
	s.wg.Go(func() {
		defer close(out)
		for change := range s.log.LeadershipChanges(ctx) {
			select {
			case out <- leader.Leadership{Leader: change.Leader, Term: change.Term}:
			case <-ctx.Done():
				return
			}
		}
	})
	return out
}

// act runs everything that only the leader does, for one term.
func (l *loops) act(ctx context.Context, term uint64) error {
	s := l.server
	s.config.Logger.Info("leading", "server", s.config.Name, "term", term)
	if err := l.catchUp(ctx); err != nil {
		if ctx.Err() == nil {
			s.config.Logger.Warn("controllers wait: caches cannot catch up", "error", err)
		}
		return err
	}
	server, err := kubernetes.NewForConfig(s.restConfig(serverUser, term))
	if err != nil {
		return err
	}
	if !l.until(ctx, "default roles", func(ctx context.Context) error { return s.ensureRoles(ctx, term) }) {
		return nil
	}
	if !l.until(ctx, "namespaces", func(ctx context.Context) error { return ensureNamespaces(ctx, server) }) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.publishAPI(ctx, server) })
	group.Go(func() error {
		return leader.Publish(ctx, leader.PublishConfig{Client: server, Server: s.config.Name, Term: term, Logger: s.config.Logger})
	})
	self := storage.WithOrigin(ctx, storage.Origin{User: serverUser.GetName(), Fence: term})
	group.Go(func() error { return s.quota.Keep(self) })
	group.Go(func() error { return s.typeChecker.Run(self) })
	group.Go(func() error { return l.runControllers(ctx, term) })
	group.Go(func() error { return l.runScheduler(ctx, term) })
	return group.Wait()
}

// catchUp waits until the caches hold everything that was written in earlier
// terms: who acts on less may do things twice.
func (l *loops) catchUp(ctx context.Context) error {
	start := time.Now()
	revision, err := l.server.storage.LinearizableRevision(ctx)
	if err != nil {
		return err
	}
	if err := l.cachesReach(ctx, revision); err != nil {
		return err
	}
	l.server.config.Logger.Info("caches caught up", "revision", revision, "took", time.Since(start))
	return nil
}

func (l *loops) runControllers(ctx context.Context, term uint64) error {
	config := l.server.restConfig(controllersUser, term)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	aggregatorClient, err := aggregator.NewForConfig(config)
	if err != nil {
		return err
	}
	self, err := l.server.self()
	if err != nil {
		return err
	}
	clusterInfo, err := pki.ClusterInfo(l.server.config.Trust.CA, self)
	if err != nil {
		return err
	}
	monitors := l.server.newMonitors(ctx, metadataClient)
	defer monitors.wg.Wait()
	return controllers.Run(ctx, controllers.Config{
		Client: client, Extensions: extensions, Aggregator: aggregatorClient, Metadata: metadataClient, Discovery: discoveryClient,
		Informers:   l.caches,
		Bundles:     l.caches.bundles,
		Definitions: l.caches.kinds[crdcontroller.Resource],
		APIServices: l.caches.kinds[apiservice.Resource],
		LocalAPIs:   localAPIs(l.server.offered),
		Prober:      l.server.aggregation,
		Monitors:    monitors.all,
		Liveness:    l.server.nodeLiveness(),
		RootCA:      l.server.config.Trust.CA.CertPEM(),
		ClusterInfo: clusterInfo,
		Objects:     l.server.clusterObjects(),
		Signer:      l.server.config.Trust.CA,
		Tokens:      l.server.access.issuer,
		Logger:      l.server.config.Logger,
	})
}

func (l *loops) runScheduler(ctx context.Context, term uint64) error {
	client, err := kubernetes.NewForConfig(l.server.restConfig(schedulerUser, term))
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, scheduler.Config{Client: client, Informers: l.caches, Serves: l.server.storage.Serves, Logger: l.server.config.Logger})
}

// restConfig is a client of this very server, without a socket. Writes carry the
// fence of the term (0: none) and the object that led to them.
func (s *Server) restConfig(u user.Info, term uint64) *rest.Config {
	return &rest.Config{
		Host:      "https://in-process",
		QPS:       -1, // the server's own loops are not held back; the log bounds what it takes
		UserAgent: "setpoint/" + Version + " " + u.GetName(),
		// Whoever deletes what a namespace holds asks for deprecated kinds too.
		WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
		Transport: inProcess{s, apiserver.Caller{User: u, Origin: func(ctx context.Context) storage.Origin {
			return origin(ctx, term)
		}}},
	}
}

func origin(ctx context.Context, term uint64) storage.Origin {
	o := storage.Origin{Fence: term}
	if uid, version, ok := reconcile.CauseFrom(ctx); ok {
		o.CauseUID = uid
		o.CauseRevision, _ = storage.ParseResourceVersion(version) // a cause without a number is no cause
	}
	return o
}
