package setpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/auditlog"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/fairness"
	"github.com/setpoint-io/setpoint/apiserver/gather"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore"
)

const (
	// raftProtocol is the ALPN name by which replicas reach each other on the API's port.
	raftProtocol = "raft/1"
	// maxConcurrentStreams bounds the requests on one HTTP/2 connection, as upstream.
	maxConcurrentStreams = 100
	// readHeaderTimeout and idleTimeout bound connections that say nothing.
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 3 * time.Minute
	// shutdownTimeout bounds how long Stop waits for requests that run.
	shutdownTimeout = 5 * time.Second
	// drainTimeout is how long Stop lets requests finish before it ends the rest:
	// watches have no end of their own.
	drainTimeout = 200 * time.Millisecond
	// lastFramesTimeout is how long Stop lets the answers of finished requests go out.
	lastFramesTimeout = 50 * time.Millisecond
	// drainPollInterval is how often Stop looks whether requests still run.
	drainPollInterval = 5 * time.Millisecond
	// closeTimeout bounds closing the store: a disk that hangs must not keep the process.
	closeTimeout = 10 * time.Second
	// handOverTimeout bounds handing leadership over; it takes milliseconds if at all.
	handOverTimeout = 500 * time.Millisecond
)

// ServerConfig is one replica of the control plane.
type ServerConfig struct {
	// Name identifies the replica in the cluster. One of InitialServers founds the
	// cluster with them; another asks them to be admitted, and waits for an
	// administrator to add it.
	Name    string
	DataDir string
	// Trust is the cluster's certificate authority, gossip key and tokens.
	Trust *pki.Cluster
	// InitialServers are the replicas and where they are now.
	InitialServers []pki.Server
	// AdvertiseAddress is where the others reach a replica that is not among them,
	// host:port.
	AdvertiseAddress string
	// Authentication says who may come in beside the cluster's own users.
	Authentication authconfig.Config
	// AuditLog records requests; nil: nothing does. Whoever made it runs it.
	AuditLog *auditlog.Log
	// Listener accepts the API, the parts' services and Raft. StartServer owns it.
	Listener net.Listener
	// ListenAddress, without a Listener, is opened when this server can answer: until
	// then connections are refused, and clients go to another server.
	ListenAddress string
	// PodListener, if any, accepts the same at the address where pods of this machine
	// look for the API. StartServer owns it.
	PodListener net.Listener
	// Gossip joins the pool of nodes and servers; nil leaves node liveness to sessions and Leases.
	Gossip *GossipConfig
	Logger *slog.Logger
	// Fatal is called when this replica must not go on (its disk fails, its state
	// differs from the others'). Default: the error ends Wait.
	Fatal func(error)
}

// Server is a running replica.
type Server struct {
	config      ServerConfig
	identity    *pki.Identity
	log         *raftstore.Store
	storage     *storage.Store
	api         *apiserver.Server
	quota       *quota.Quota
	fairness    *fairness.Fairness
	custom      *crd.Catalog
	frontProxy  *aggregation.FrontProxy
	aggregation *aggregation.Aggregator
	// offered are the built-in kinds, reviews included.
	offered []*resource.Any
	// typeChecker tells whether policies fit what they are about.
	typeChecker *dynamic.TypeChecker
	caches      *caches
	access      *access
	liveness    *liveness
	http        *http.Server

	cancel      context.CancelFunc
	endRequests context.CancelFunc
	// requests is how many run now, those that are taken over by a stream included.
	requests atomic.Int64
	wg       sync.WaitGroup
	fatal    chan error
	stop     sync.Once
}

// StartServer starts a replica and returns when it listens; Ready tells when it
// serves. It runs until Stop or the end of ctx.
func StartServer(ctx context.Context, config ServerConfig) (*Server, error) {
	s := &Server{config: config, fatal: make(chan error, 1)}
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
	self, err := s.self()
	if err != nil {
		return err
	}
	if s.identity, err = s.config.Trust.Server(self, time.Now()); err != nil {
		return err
	}
	if err := s.openLog(ctx, self); err != nil {
		return err
	}
	if err := s.startLiveness(ctx, self); err != nil {
		return err
	}
	if err := s.buildAPI(ctx, self); err != nil {
		return err
	}
	if err := s.serve(); err != nil {
		return err
	}
	return s.runLoops(ctx)
}

// self is this replica as the others know it.
func (s *Server) self() (pki.Server, error) {
	for _, server := range s.config.InitialServers {
		if server.Name == s.config.Name {
			return server, nil
		}
	}
	if s.config.AdvertiseAddress != "" {
		return pki.Server{Name: s.config.Name, Endpoint: s.config.AdvertiseAddress}, nil
	}
	return pki.Server{}, fmt.Errorf("%q is not one of the initial servers: check --name and --initial-servers", s.config.Name)
}

// openLog opens the replicated store. Its peers are dialled over the API's port.
func (s *Server) openLog(ctx context.Context, self pki.Server) error {
	client, err := s.identity.ClientConfig()
	if err != nil {
		return err
	}
	servers := make([]raftstore.Server, len(s.config.InitialServers))
	for i, server := range s.config.InitialServers {
		servers[i] = raftstore.Server{ID: server.Name, Address: server.Endpoint}
	}
	s.log, err = raftstore.Open(ctx, raftstore.Config{
		Name: self.Name, ClusterID: s.config.Trust.CA.Pin(), DataDir: s.config.DataDir, InitialServers: servers, AdvertiseAddress: self.Endpoint,
		Dial: raftDialer(client), HTTPClient: peerClient(client), AuthorizePeer: authorizePeer,
		Logger: s.config.Logger, Fatal: s.config.Fatal,
	})
	return err
}

func raftDialer(base *tls.Config) func(ctx context.Context, address, serverID string) (net.Conn, error) {
	config := base.Clone()
	config.NextProtos = []string{raftProtocol}
	return func(ctx context.Context, address, serverID string) (net.Conn, error) {
		pinned := config.Clone()
		pinned.ServerName = serverID // every server's certificate bears its name
		return (&tls.Dialer{Config: pinned}).DialContext(ctx, "tcp", address)
	}
}

// peerClient calls the services of other replicas, each pinned to its name;
// connections are kept.
func peerClient(base *tls.Config) func(serverID, address string) (*http.Client, string) {
	var clients sync.Map // server id to *http.Client
	return func(serverID, address string) (*http.Client, string) {
		client, ok := clients.Load(serverID)
		if !ok {
			config := base.Clone()
			config.ServerName = serverID
			client, _ = clients.LoadOrStore(serverID, &http.Client{Transport: newTransport(config)})
		}
		return client.(*http.Client), "https://" + address
	}
}

// authorizePeer lets other servers in, by the certificate of their connection.
func authorizePeer(r *http.Request) error {
	if r.TLS == nil {
		return pki.ErrNotServer
	}
	return pki.RequireServer(*r.TLS)
}

// serve starts the listener: HTTP for everybody, Raft for servers only.
func (s *Server) serve() error {
	config, err := s.identity.ServerConfig()
	if err != nil {
		return err
	}
	requests, endRequests := context.WithCancel(context.Background())
	s.endRequests = endRequests
	s.http = &http.Server{
		Handler: s.counted(s.api), TLSConfig: config,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       func(ctx context.Context, _ net.Conn) context.Context { return auth.WithConnection(ctx) },
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	if err := gather.Configure(s.http, &http2.Server{MaxConcurrentStreams: maxConcurrentStreams}); err != nil {
		return err
	}
	s.http.TLSConfig.NextProtos = append(s.http.TLSConfig.NextProtos, raftProtocol)
	s.http.TLSNextProto[raftProtocol] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		if err := pki.RequireServer(conn.ConnectionState()); err != nil {
			s.config.Logger.Warn("raft connection refused", "remote", conn.RemoteAddr().String(), "error", err)
			return
		}
		s.log.HandleRaftConn(conn)
	}
	if s.config.Listener == nil {
		if s.config.Listener, err = listen(s.config.ListenAddress); err != nil {
			return err
		}
	}
	s.accept(s.config.Listener)
	if s.config.PodListener != nil {
		s.accept(s.config.PodListener)
	}
	return nil
}

func (s *Server) accept(listener net.Listener) {
	s.wg.Go(func() {
		if err := s.http.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.config.Fatal(fmt.Errorf("listener: %w", err))
		}
	})
}

// Ready waits until the replica answers reads and writes and the cluster has its
// system objects.
func (s *Server) Ready(ctx context.Context) error {
	for {
		err := errors.Join(s.checkLog(ctx), s.checkSystem(ctx))
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

// Stop hands leadership over, lets requests finish, ends watches and closes the
// store. Within a second on a healthy cluster.
func (s *Server) Stop() error {
	var err error
	s.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		s.handOver(ctx)
		s.cancel()
		drained := time.AfterFunc(drainTimeout, s.endRequests)
		defer drained.Stop()
		s.closeHTTP(ctx)
		s.endRequests()
		err = within(closeTimeout, func() error {
			err := s.log.Shutdown(ctx)
			s.wg.Wait()
			return err
		})
	})
	return err
}

// errStuck says that a part did not end, as with a disk that hangs. The process
// can only exit.
var errStuck = errors.New("did not stop in time")

// within runs do, but waits no longer than limit for it.
func within(limit time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return errStuck
	}
}

// counted keeps s.requests.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		defer s.requests.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// closeHTTP takes no more requests and returns when those that run have ended. The
// library would wait for the connections of Raft too, which never fall idle.
func (s *Server) closeHTTP(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.wg.Go(func() {
		defer cancel()
		for s.requests.Load() > 0 && sleep(ctx, drainPollInterval) {
		}
		sleep(ctx, lastFramesTimeout)
	})
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
}

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// handOver makes another replica lead before this one falls silent.
func (s *Server) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := s.log.TransferLeadership(ctx); err != nil {
		s.config.Logger.Debug("leadership not handed over", "error", err)
	}
}

func isServer(u user.Info) bool {
	for _, group := range u.GetGroups() {
		if group == pki.GroupServers || group == user.SystemPrivilegedGroup {
			return true
		}
	}
	return false
}
