package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
	"github.com/setpoint-io/setpoint/apiserver/admission/configuration"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/runtimeconfig"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	"github.com/setpoint-io/setpoint/internal/gates"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/sdnotify"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/kubeconfigs"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/server/access"
	"github.com/setpoint-io/setpoint/server/auditlog"
	"github.com/setpoint-io/setpoint/server/backups"
	"github.com/setpoint-io/setpoint/server/past"
	"github.com/setpoint-io/setpoint/server/removed"
	"github.com/setpoint-io/setpoint/server/settings"
)

// readyTimeout bounds how long a start may take before it is reported; the
// server goes on trying.
const readyTimeout = 30 * time.Second

// signingDurationMin leaves clients the time to renew their certificates.
const signingDurationMin = time.Minute

// Options are the flags of `setpoint server`.
type Options struct {
	Name, DataDir, AdvertiseAddress, InitialServers string
	TrustDir, TokenFile                             string
	// Join are servers of the cluster that this one joins.
	Join          []string
	GossipAddress string
	settings.Options
	Admission                   choice.Flags
	AdmissionConfigFile         string
	FeatureGates, RuntimeConfig map[string]string
	Authentication              authconfig.Config
	AuthorizationFile           string
	Encryption                  encryption.Options
	Audit                       auditlog.Config
	Backups                     backups.Config
	History                     past.Config
	HoldFeatureLevel            uint64
	Logger                      *slog.Logger
	Out                         io.Writer
	// Flags are all of them, as /flagz shows them.
	Flags *pflag.FlagSet
}

var (
	errNoName    = errors.New("--name must not be empty")
	errNoDataDir = errors.New("--data-dir must not be empty")
	errSigning   = fmt.Errorf("--cluster-signing-duration must be at least %s", signingDurationMin)
	errHold      = fmt.Errorf("--hold-feature-level: this release knows levels up to %d", raftstore.FeatureLevel)
	errTokenFile = errors.New("the token does not belong to this cluster: 'setpoint token create' makes one that does")
	errNoTrust   = errors.New(
		"no trust material: run 'setpoint cluster init --servers ... --out DIR' once and give each server --trust-dir DIR",
	)
)

// Parsed are Options whose texts have been read.
type Parsed struct {
	Options
	servers   []trust.Server // all replicas; without a list this one is alone; none if it joins others
	cluster   settings.Cluster
	admission configuration.Configuration
	service   *sdnotify.Service
}

// Parse reads the flags and the files that they name, or says what is wrong with them.
func (o Options) Parse() (*Parsed, error) {
	switch {
	case o.Name == "":
		return nil, errNoName
	case o.DataDir == "":
		return nil, errNoDataDir
	case o.SigningDuration < signingDurationMin:
		return nil, errSigning
	case o.HoldFeatureLevel > raftstore.FeatureLevel:
		return nil, errHold
	}
	servers, err := o.parseServers()
	if err != nil {
		return nil, err
	}
	cluster, settingsErr := o.Options.Parse()
	admissionConfig, admissionErr := configuration.Read(o.AdmissionConfigFile, o.Admission.Added())
	if admissionErr = errors.Join(admissionErr, o.Admission.Validate()); admissionErr == nil {
		admissionErr = validateAdmission(admissionConfig, o.Admission.Added())
	}
	return &Parsed{Options: o, servers: servers, cluster: cluster, admission: admissionConfig}, errors.Join(
		settingsErr, admissionErr, gates.Validate(o.FeatureGates), runtimeconfig.Validate(o.RuntimeConfig),
		access.Validate(o.Authentication, o.AuthorizationFile), o.Audit.Validate(), o.Encryption.Validate(),
		o.Backups.Validate(), o.History.Validate(),
	)
}

// parseServers are the replicas that the flags name.
func (o *Options) parseServers() ([]trust.Server, error) {
	if len(o.Join) == 0 {
		return trust.ServersOf(o.Name, o.AdvertiseAddress, o.InitialServers)
	}
	return nil, o.validateJoin()
}

// isInitial reports whether this server is one of the list. Another joins them.
func (o *Options) isInitial(servers []trust.Server) bool {
	return slices.ContainsFunc(servers, func(s trust.Server) bool { return s.Name == o.Name })
}

// Run runs one replica until ctx ends.
func (o *Parsed) Run(ctx context.Context) error {
	process.GC()
	process.WakeLess()
	process.MemoryLimit(o.Logger)
	unlock, err := process.Lock(o.DataDir, process.ServerRole)
	if err != nil {
		return err
	}
	defer unlock()
	o.service = sdnotify.Open(o.Logger)
	defer o.service.Watch(ctx)()
	cluster, err := o.trust(ctx, o.servers)
	if err != nil {
		return err
	}
	if err := process.CheckPort(o.listenAddress(o.servers), process.AdvertiseFlag); err != nil {
		return err
	}
	noted, err := removed.Noted(o.DataDir)
	if err == nil && !noted {
		err = o.runStore(ctx, cluster)
	}
	if noted || errors.Is(err, raftstore.ErrRemoved) {
		return o.answerRemoved(ctx, cluster)
	}
	return err
}

// judgeStart marks the ends of a start that the next one would meet again, until somebody has decided what comes of the server's data.
// What others of the cluster can change, or the disk, is none of these. Nor is what a server meets while it runs, the same errors too: it
// notes that its data are damaged, and the next start has the others give them back, or fails and is judged here.
func judgeStart(err error) error {
	for _, doubt := range []error{
		raftstore.ErrForeignData, raftstore.ErrCorrupt, raftstore.ErrStateLost, raftstore.ErrDiskWentBack, raftstore.ErrCommittedLost,
		raftstore.ErrFeatureLevel, founded.ErrBefore,
	} {
		if errors.Is(err, doubt) {
			return process.Doubt(err)
		}
	}
	return err
}

// runStore runs the replica and all that is built on it, until it fails or ctx ends.
func (o *Parsed) runStore(ctx context.Context, cluster *trust.Cluster) error {
	o.Audit.Logger = o.Logger
	audit, stopAudit, err := auditlog.Start(o.Audit)
	if err != nil {
		return err
	}
	server, err := Start(ctx, Config{
		Name: o.Name, DataDir: o.DataDir, Trust: cluster,
		InitialServers: o.servers, Known: o.known(cluster), New: cluster.Joining(), AdvertiseAddress: o.AdvertiseAddress,
		ListenAddress: o.listenAddress(o.servers), Gossip: o.gossip(), Logger: o.Logger, Cluster: o.cluster,
		DisabledAdmission: o.Admission.LeftOut(),
		EnabledAdmission:  o.Admission.Added(), AdmissionConfiguration: o.admission, Flags: o.Flags,
		Authentication: o.Authentication, AuthorizationFile: o.AuthorizationFile, Encryption: o.Encryption, AuditLog: audit,
		Backups: o.Backups, History: o.History, HoldFeatureLevel: o.HoldFeatureLevel,
		Processor: cpushare.New(cpushare.Process()),
	})
	if err != nil {
		return errors.Join(judgeStart(err), stopAudit())
	}
	if err := kubeconfigs.Link(o.DataDir, o.trustDir(), trust.AdminKubeconfig); err != nil {
		o.Logger.Warn("setpoint kubectl will not find this cluster by itself", "err", err)
	}
	return errors.Join(o.waitFor(ctx, server, cluster), server.Stop(), stopAudit())
}

// waitFor returns when the replica fails, also before the server is ready, or when ctx ends.
func (o *Parsed) waitFor(ctx context.Context, server *Server, cluster *trust.Cluster) error {
	ready, cancel := context.WithCancel(ctx)
	var announcing sync.WaitGroup
	announcing.Go(func() { o.becomeMember(ready, server, cluster) })
	announcing.Go(func() { o.announce(ready, server) })
	announcing.Go(func() { o.tellManager(ready, server) })
	defer announcing.Wait()
	defer cancel()
	return o.ended(ctx, server)
}

// ended waits for the end of the server. The service manager is told of it at once, unless the process goes on with saying that the server
// was removed.
func (o *Parsed) ended(ctx context.Context, server *Server) error {
	err := server.Wait(ctx)
	if errors.Is(err, raftstore.ErrRemoved) {
		o.service.Does(err.Error(), nil)
	} else {
		o.service.Stopping()
	}
	return err
}

// tellManager tells the service manager that the server answers, then that it serves, however late: that needs most of the others, and what
// waits for this process to start must not wait for them.
func (o *Parsed) tellManager(ctx context.Context, server *Server) {
	o.service.Does(o.Name+" waits for a majority of the servers", nil) // until then the API waits too
	if err := server.Ready(ctx); err != nil {
		return // it stops before
	}
	o.service.Does(o.Name+" serves the cluster", server.Progress)
}

// announce says when the server is ready, or that it waits for others.
func (o *Options) announce(ctx context.Context, server *Server) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := server.Ready(ctx); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return // the server stops
		}
		o.Logger.Warn("no leader yet: are a majority of the servers running?", "err", err)
		return
	}
	fmt.Fprintf(o.Out, "server %s is ready; kubeconfig: %s\n", o.Name, filepath.Join(o.trustDir(), trust.AdminKubeconfig))
}

func (o *Options) trustDir() string {
	if o.TrustDir != "" {
		return o.TrustDir
	}
	return o.DataDir
}

// trust loads what `cluster init` wrote. A server that is alone makes its own, one that joins gets it.
func (o *Parsed) trust(ctx context.Context, servers []trust.Server) (*trust.Cluster, error) {
	var cluster *trust.Cluster
	var err error
	switch {
	case len(o.Join) > 0:
		cluster, err = o.adopted(ctx)
	case len(servers) == 1 && o.isInitial(servers):
		cluster, err = trust.InitCluster(o.trustDir(), servers, time.Now())
	default:
		cluster, err = o.awaitTrust(ctx)
	}
	if err != nil {
		return nil, err
	}
	return cluster, o.checkToken(cluster)
}

// awaitTrust gives whoever runs `cluster init` a while: containers start together.
func (o *Options) awaitTrust(ctx context.Context) (*trust.Cluster, error) {
	var cluster *trust.Cluster
	err := process.AwaitFile(ctx, o.Logger, o.trustDir(), func() (err error) {
		cluster, err = trust.LoadCluster(o.trustDir())
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", o.trustDir(), errNoTrust)
	}
	return cluster, err
}

func (o *Options) checkToken(cluster *trust.Cluster) error {
	if o.TokenFile == "" {
		return nil
	}
	text, err := os.ReadFile(o.TokenFile)
	if errors.Is(err, os.ErrNotExist) && len(o.Join) > 0 {
		return nil // whoever has joined needs it no more
	}
	if err != nil {
		return err
	}
	token, err := tokens.Parse(string(text))
	if err != nil {
		return err
	}
	if cluster.CA.Dropped(token.Pin) { // whoever starts again with it is in already
		o.Logger.Warn("the token is of a certificate authority that this cluster has dropped: nobody can join with it", "file", o.TokenFile)
		return nil
	}
	if !cluster.CA.Holds(token.Pin) {
		return fmt.Errorf("%s: %w", o.TokenFile, errTokenFile)
	}
	return nil
}

// listenAddress is every address of the machine at the advertised port, except
// that a loopback address stays on loopback.
func (o *Options) listenAddress(servers []trust.Server) string {
	address := o.AdvertiseAddress
	for _, server := range servers {
		if server.Name == o.Name && address == "" {
			address = server.Endpoint
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // ParseServers has refused anything else
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return address
	}
	return net.JoinHostPort("", port)
}

func (o *Options) gossip() *gossip.Membership {
	if o.GossipAddress == "" {
		return nil
	}
	return &gossip.Membership{BindAddress: o.GossipAddress}
}
