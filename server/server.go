package server

import (
	"cmp"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/apiserver/admission/configuration"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	names "github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/sampled"
	"github.com/setpoint-io/setpoint/internal/shares"
	"github.com/setpoint-io/setpoint/internal/strangers"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/auditlog"
	"github.com/setpoint-io/setpoint/server/backups"
	"github.com/setpoint-io/setpoint/server/drain"
	"github.com/setpoint-io/setpoint/server/http2buffer"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/liveness"
	"github.com/setpoint-io/setpoint/server/parts"
	"github.com/setpoint-io/setpoint/server/past"
	"github.com/setpoint-io/setpoint/server/peers"
	"github.com/setpoint-io/setpoint/server/rotations"
	"github.com/setpoint-io/setpoint/server/settings"
	"github.com/setpoint-io/setpoint/server/term"
	"github.com/setpoint-io/setpoint/server/why"
)

const (
	// maxConcurrentStreams bounds the requests on one HTTP/2 connection, as upstream.
	maxConcurrentStreams = 100
	// readHeaderTimeout and idleTimeout bound connections that say nothing.
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 3 * time.Minute
	// shutdownTimeout bounds how long the store may take to end.
	shutdownTimeout = 5 * time.Second
	// closeTimeout bounds closing the store: a disk that hangs must not keep the process.
	closeTimeout = 10 * time.Second
	// handOverTimeout bounds handing leadership over; it takes milliseconds if at all.
	handOverTimeout = 500 * time.Millisecond
)

// KubernetesVersion is the version of Kubernetes whose API is served.
const KubernetesVersion = discovery.KubernetesVersion

// FeatureLevel is the highest that this release can apply.
const FeatureLevel = raftstore.FeatureLevel

// DefaultPort is the port of the API, the services of the parts, and Raft.
const DefaultPort = 6443

// Memory is where the store of a replica is that ends with its process.
type Memory = raftstore.Memory

// NewMemory returns an empty one, of a replica that is alone or has peers.
func NewMemory(alone bool) *Memory { return raftstore.NewMemory(alone) }

// Config is one replica of the control plane.
type Config struct {
	// Name identifies the replica in the cluster. One of InitialServers founds the
	// cluster with them; another asks them to be admitted, and waits for an
	// administrator to add it.
	Name    string
	DataDir string
	// Memory keeps the store in place of DataDir.
	Memory *Memory
	// Dial reaches the other replicas; nil: over the network.
	Dial peers.Dial
	// OneProcess says that all replicas run in this process: see timingOf.
	OneProcess bool
	// Trust is the cluster's certificate authority, gossip key and tokens.
	Trust *trust.Cluster
	// InitialServers are the replicas and where they are now.
	InitialServers []trust.Server
	// Known are further replicas that are asked whether there is a cluster: where the record of the founding saw them last.
	Known []trust.Server
	// New says that the replica has never been a member: it does not take the place of one that has its name.
	New bool
	// AdvertiseAddress is where the others reach a replica that is not among them,
	// host:port.
	AdvertiseAddress string
	// Cluster are the settings of the cluster, of which all servers should have the same.
	settings.Cluster
	// Authentication configures OIDC issuers and anonymous requests, beside the cluster's own users.
	Authentication authconfig.Config
	// AuthorizationFile is an AuthorizationConfiguration: webhooks beside the cluster's own judges; "": none.
	AuthorizationFile string
	// Encryption says how objects are encrypted that are stored, beside what the trust
	// folder says.
	Encryption encryption.Options
	// AuditLog records requests; nil: they are not recorded. Its maker runs it.
	AuditLog *auditlog.Log
	// HoldFeatureLevel is as in raftstore.Config.
	HoldFeatureLevel uint64
	// Backups are made by a schedule; the zero value: none.
	Backups backups.Config
	// History says how long it is kept what objects were; the zero value: as usual. Without a data directory there is none.
	History past.Config
	// Listener accepts the API, the parts' services and Raft. Start owns it.
	Listener net.Listener
	// ListenAddress, without a Listener, is opened when this server can answer: until
	// then connections are refused, and clients go to another server. Without both nobody
	// can connect, but for clients of this process and where Accept is told.
	ListenAddress string
	// PodListener, if any, accepts the same at the address where pods of this machine
	// look for the API. Start owns it.
	PodListener net.Listener
	// Gossip joins the pool of nodes and servers; nil leaves node liveness to sessions and Leases.
	Gossip *gossip.Membership
	// Liveness says in place of sessions and gossip which nodes are alive; nil: they do.
	Liveness nodelifecycle.Liveness
	// DialOutside reaches pods, aggregated servers and webhooks for conversion in place of the network; nil: over the network.
	DialOutside func(ctx context.Context, network, address string) (net.Conn, error)
	// APIOnly leaves out the control loops and the scheduler, but those that upstream's API
	// server has itself, for tests of what acts on the API.
	APIOnly bool
	// Loops are the control loops that run, by their names, and "scheduler"; nil: all. Those of upstream's API server
	// run in any case.
	Loops []string
	// Intercept, if any, is asked to send each request of the control loops and the scheduler, which user makes, for tests of
	// what comes of it when one fails.
	Intercept inprocess.Intercept
	// Pace lets administrators hold control loops, on clusters to learn on; nil refuses.
	Pace *pace.Pace
	// Lessons lets administrators break and mend parts of the cluster, on clusters to learn on; nil refuses.
	Lessons admin.Lessons
	// Clock is the time of the cluster, by which objects are stamped and judged and its loops act; nil is the real one. All
	// servers of a cluster need the same.
	Clock clock.WithTicker
	// DisabledAdmission are admission plugins, by upstream's names, that are left out.
	DisabledAdmission []string
	// Processor divides the processor time of this process among tenants; nil: it is not divided. Servers of one process have one.
	Processor *cpushare.Share
	// EnabledAdmission are admission plugins that run beside the default ones.
	EnabledAdmission []string
	// Flags are those of the command, for /flagz; nil: there is no such page.
	Flags *pflag.FlagSet
	// AdmissionConfiguration is what admission plugins are told.
	AdmissionConfiguration configuration.Configuration
	Logger                 *slog.Logger
	// Fatal is called when this replica must not go on (its disk fails, its state
	// differs from the others'). Default: the error ends Wait.
	Fatal func(error)
}

// Server is a running replica.
type Server struct {
	config   Config
	identity *identity
	log      *raftstore.Store
	liveness *liveness.Liveness
	api      *api
	http     *http.Server
	drain    *drain.Drain
	parts    *parts.Parts
	// strangers limits connections that have not authenticated.
	strangers *strangers.Door
	// revoked is who is shut out, as the list in the store says.
	revoked revocation.Judge
	// history is nil if none is kept.
	history *history.History
	// noServers chooses which connections are told of that are not servers'.
	noServers sampled.Sampler
	// rotations are nil until the API is made.
	rotations atomic.Pointer[rotations.Rotations]

	fatal  chan error
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stop   sync.Once
}

// Start starts a replica and returns when it listens; Ready tells when it
// serves. It runs until Stop or the end of ctx.
func Start(ctx context.Context, config Config) (*Server, error) {
	s := &Server{config: config, drain: drain.New(), fatal: make(chan error, 1)}
	s.parts = parts.New(config.Name, process.Version, config.Logger)
	s.config.Logger = s.parts.Logger(names.APIServer)
	s.config.Clock = cmp.Or[clock.WithTicker](config.Clock, clock.RealClock{})
	if s.config.Fatal == nil {
		s.config.Fatal = s.fail
	}
	ctx, s.cancel = context.WithCancel(ctx)
	if err := s.start(ctx); err != nil {
		s.abandon()
		return nil, fmt.Errorf("server %s: %w", config.Name, err)
	}
	return s, nil
}

// abandon ends what a failed start has begun.
func (s *Server) abandon() {
	s.cancel()
	if s.config.Listener != nil {
		_ = s.config.Listener.Close()
	}
	if s.config.PodListener != nil {
		_ = s.config.PodListener.Close()
	}
	if s.log == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // there is nobody to hand over to
	_ = s.log.Shutdown(ended)
}

func (s *Server) start(ctx context.Context) (err error) {
	if err = term.CheckLoops(s.config.Loops); err != nil {
		return err
	}
	if s.identity, err = newIdentity(s.config); err != nil {
		return err
	}
	if s.log, err = openLog(ctx, s.config, s.identity, &s.revoked, s.parts.Logger(names.Store)); err != nil {
		return err
	}
	s.openHistory(ctx)
	s.liveness, err = liveness.New(ctx, liveness.Config{
		Name: s.config.Name, Endpoint: s.identity.self.Endpoint, Members: s.clusterServers, Led: s.log.Led,
		Identity: s.identity.live, Authority: s.config.Trust.CA, Revoked: &s.revoked,
		Dial: s.config.Dial, Gossip: s.config.Gossip, Keys: s.config.Trust.GossipKeys, Follows: s.followsRotations,
		Logger: s.config.Logger,
	})
	if err != nil {
		return err
	}
	s.wg.Go(func() {
		if err := s.liveness.Run(ctx); err != nil {
			s.config.Logger.Warn("node liveness ended badly", "err", err)
		}
	})
	maker, err := backups.New(s.config.Name, s.config.Backups, s.log, s.config.Logger)
	if err != nil {
		return err
	}
	s.api, err = newAPI(ctx, apiConfig{
		Config: s.config, identity: s.identity, log: s.log, liveness: s.liveness, drain: s.drain, servers: s.servers, parts: s.parts,
		revoked: &s.revoked, maker: maker, history: s.history,
	})
	if err != nil {
		return err
	}
	s.rotations.Store(s.api.rotations)
	if maker != nil {
		s.wg.Go(func() { maker.Run(ctx) })
	}
	if err := s.serve(); err != nil {
		return err
	}
	s.wg.Go(func() { s.identity.keeper.Run(ctx) })
	s.runLoops(ctx)
	return nil
}

// followsRotations reports whether the keys of this server are those of the cluster now.
func (s *Server) followsRotations() bool {
	r := s.rotations.Load()
	return r != nil && r.Begun()
}

// openLog opens the replicated store. Its peers are dialled over the API's port.
func openLog(ctx context.Context, config Config, i *identity, revoked *revocation.Judge, logger *slog.Logger) (*raftstore.Store, error) {
	dial, err := peers.RaftDialer(i.live, config.Dial, revoked)
	if err != nil {
		return nil, err
	}
	clients, err := peers.Clients(i.live, config.Dial, revoked)
	if err != nil {
		return nil, err
	}
	var servers []raftstore.Server
	for _, server := range slices.Concat(config.InitialServers, config.Known) {
		servers = append(servers, raftstore.Server{ID: server.Name, Address: server.Endpoint})
	}
	return raftstore.Open(ctx, raftstore.Config{
		Name: i.self.Name, ClusterID: config.Trust.CA.ClusterID(), DataDir: config.DataDir, Founded: foundedIn(config),
		InitialServers: servers, New: config.New, AdvertiseAddress: i.self.Endpoint,
		Dial: dial, HTTPClient: clients, AuthorizePeer: peers.Authorize,
		Timing: timingOf(config.OneProcess), HoldFeatureLevel: config.HoldFeatureLevel, Logger: logger, Fatal: config.Fatal,
		Disk: diskOf(config.Memory),
	})
}

// foundedIn is where the founding is written down, nil for a cluster that ends with its process.
func foundedIn(config Config) founded.Keeper {
	if file := config.Trust.Founded(); file != "" && config.Memory == nil {
		return file
	}
	return nil
}

// diskOf is nil, not an interface of nothing, without a Memory.
func diskOf(m *Memory) raftstore.Disk {
	if m == nil {
		return nil
	}
	return raftstore.MemoryDisk(m)
}

// serve starts the listener: HTTP for everybody, Raft for servers only.
func (s *Server) serve() error {
	config, err := s.identity.live.ServerConfig()
	if err != nil {
		return err
	}
	s.http = &http.Server{
		Handler: s.drain.Count(clusterlife.Guard(s.api.server, s.log.Lives)), TLSConfig: config,
		BaseContext: func(net.Listener) context.Context { return s.drain.Requests() },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return auth.WithConnection(ctx, func(tenant shares.Holder) { strangers.KnownAs(c, tenant) })
		},
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	if err := http2buffer.Configure(s.http, &http2.Server{MaxConcurrentStreams: maxConcurrentStreams}); err != nil {
		return err
	}
	s.http.TLSConfig.NextProtos = append(s.http.TLSConfig.NextProtos, peers.RaftProtocol, "http/1.1")
	s.http.TLSNextProto[peers.RaftProtocol] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		if err := trust.RequireServer(conn.ConnectionState()); err != nil {
			s.noteNoServer(conn.RemoteAddr().String(), err)
			return
		}
		who := revocation.OfConnection(conn.ConnectionState())
		if err := s.revoked.Revoked(who); err != nil {
			s.noteRevoked(conn.RemoteAddr().String(), err)
			return
		}
		strangers.Known(conn)
		defer s.revoked.Opened(who, func() { _ = conn.Close() })()
		s.log.HandleRaftConn(conn)
	}
	if s.config.Listener == nil && s.config.ListenAddress != "" {
		if s.config.Listener, err = process.Listen(s.config.ListenAddress, process.AdvertiseFlag); err != nil {
			return err
		}
	}
	s.strangers = strangers.NewSharedDoor(strangers.Limit(), strangers.TenantsLimit())
	if s.config.Processor != nil {
		s.strangers.Reads = s.config.Processor.Read
	}
	for _, listener := range []net.Listener{s.config.Listener, s.config.PodListener} {
		if listener != nil {
			s.Accept(listener)
		}
	}
	return nil
}

// noteNoServer tells of who wants to speak as servers do and is none.
func (s *Server) noteNoServer(address string, err error) {
	if skipped, tell := s.noServers.Tell(sampled.Source(address), time.Now()); tell {
		s.config.Logger.Warn("raft connection refused", "remote", address, "err", err, "skipped", skipped)
	}
}

// noteRevoked tells of a server that was shut out and wants to take part in Raft.
func (s *Server) noteRevoked(address string, err error) {
	revoked, ok := errors.AsType[*revocation.Error](err)
	if !ok {
		return
	}
	if skipped, tell := revoked.Tell(time.Now()); tell {
		s.config.Logger.Warn("raft connection refused", "remote", address, "err", err, "skipped", skipped)
	}
}

// RESTConfig is a client of this server as the user, without a socket.
func (s *Server) RESTConfig(u user.Info) *rest.Config { return s.api.door.Config(u, 0) }

// Fork returns what the store of this server holds, if it is in memory: a Config with the same Trust that has it
// as Memory goes on from there by itself.
func (s *Server) Fork(ctx context.Context) (*Memory, error) { return s.log.Fork(ctx) }

// Changes are what was stored after a revision and is remembered, oldest first.
func (s *Server) Changes(after uint64) ([]storage.Recorded, error) {
	events, err := s.log.Since(after)
	changes := make([]storage.Recorded, 0, len(events))
	for _, event := range events {
		if change, ok := storage.RecordedBy(event); ok {
			changes = append(changes, change)
		}
	}
	return changes, err
}

// Why explains an object as far as this server's own parts may know, which is all.
func (s *Server) Why(ctx context.Context, kind, namespace, name string) (explain.Answer, error) {
	return s.api.newWhy().Answer(ctx, inprocess.Server, why.Question{Kind: kind, Namespace: namespace, Name: name})
}

// Revision is that of the newest change.
func (s *Server) Revision() uint64 { return s.log.Root().Revision }

// Status describes this server.
func (s *Server) Status() admin.ServerStatus { return s.api.admin.Status() }

// Ready waits until the replica answers reads and writes and the cluster has its
// system objects.
func (s *Server) Ready(ctx context.Context) error {
	for {
		err := s.api.check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server %s is not ready: %w", s.config.Name, err)
		case <-time.After(readyPollInterval):
		}
	}
}

// readyPollInterval is how often Ready asks while there is no leader yet.
const readyPollInterval = 10 * time.Millisecond

// Wait blocks until the replica fails or ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case err := <-s.fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (s *Server) fail(err error) {
	select {
	case s.fatal <- err:
	default: // the first one counts
	}
}

// Stop says that this server is not ready, hands leadership over, takes no more requests, ends watches, lets
// other requests finish (package drain) and closes the store. Within a second unless a request takes longer.
func (s *Server) Stop() error {
	var err error
	s.stop.Do(func() {
		s.drain.Begin()
		s.handOver(context.Background())
		s.cancel()
		s.drain.Close(s.http)
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		err = within(closeTimeout, func() error {
			err := s.log.Shutdown(ctx)
			s.wg.Wait()
			return err
		})
	})
	return err
}

// handOver makes another replica lead before this one falls silent.
func (s *Server) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := s.log.TransferLeadership(ctx); err != nil {
		s.config.Logger.Debug("leadership not handed over", "err", err)
	}
}
