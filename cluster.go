package setpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/podlistener"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
	"github.com/setpoint-io/setpoint/internal/clusterclock"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/access"
	"github.com/setpoint-io/setpoint/server/auditlog"
	"github.com/setpoint-io/setpoint/server/settings"
)

const (
	maxReplicas = 5
	// maxSimulatedNodes is the largest cluster that upstream promises to work.
	maxSimulatedNodes = 5000
	loopback          = "127.0.0.1"
)

// Config is a cluster in this process. The zero Config is one replica without nodes, on a free
// port of loopback and in a temporary directory.
type Config struct {
	// DataDir keeps the cluster; "": a temporary directory, which Stop removes.
	DataDir string
	// InMemory is a cluster without files and without a port: clients of this process reach it by RESTConfig and
	// ClientConfig, others after Listen. One replica can be forked; several can crash (CrashServer).
	InMemory bool
	// Replicas of the control plane, 1 to 5; 0: 1.
	Replicas int
	// Port of the first replica, the others follow; 0: those of the last start in DataDir, or
	// free ones.
	Port int
	// SimulatedNodes are nodes, 0 to 5000, whose pods become Running and Ready and run nothing.
	SimulatedNodes int
	// APIOnly leaves out the control loops and the scheduler, but those that upstream's API server has itself:
	// only the program under test acts on objects.
	APIOnly bool
	// Loops are the control loops that run beside those, by the names that their events bear, and "scheduler"; nil: all.
	Loops []string
	// Intercept, if any, is asked to send each request of the control loops and the scheduler, which user makes: it does so
	// with next, or does something else. For tests of what comes of it when a write fails.
	Intercept func(user string, r *http.Request, next http.RoundTripper) (*http.Response, error)
	// DisabledAdmission are admission plugins, by upstream's names, that are left out.
	DisabledAdmission []string
	// EnabledAdmission are admission plugins, by upstream's names, that run beside the default ones; those that need a configuration cannot.
	EnabledAdmission []string
	// OpenToPods opens each replica at the machine's own address too, for pods of this machine
	// and nobody else: RunNode needs it.
	OpenToPods bool
	// PodCIDR, NodeMaskSize and NodeMaskSize6 are from where pods have addresses, and the size of each
	// node's part, of IPv4 and of IPv6, as the flags have them; zero: what is in force.
	PodCIDR                     string
	NodeMaskSize, NodeMaskSize6 int
	// ServiceCIDR is from where Services have addresses, as the flag has it, the same at every start; "": 10.96.0.0/16.
	ServiceCIDR string
	// LoadBalancerAddresses is where Services of that type get their addresses from, as the flag has it; "": the nodes' addresses.
	LoadBalancerAddresses string
	// DivideProcessor lets no tenant have more than its share of this process's processor time, as a server by itself does. It is for
	// processes that do nothing else.
	DivideProcessor bool
	// ServiceExternalIPs are the namespaces whose Services may have external addresses, or "all" or "none" alone; nil: none.
	ServiceExternalIPs []string
	// DNS is "builtin" or "none", as the flag; "": builtin.
	DNS string
	// GatewayAPI makes the definitions of the Gateway API, as the flag, which is on by default.
	GatewayAPI bool
	// SchedulerConfig is the path of a KubeSchedulerConfiguration; "": upstream's default profile.
	SchedulerConfig string
	// LocalVolumes makes the class setpoint-local, the default one, whose volumes are on the nodes' disks.
	LocalVolumes bool
	// Lessons makes a cluster to learn on, as `setpoint dev`'s: administrators may pause and step its control loops, kill and heal servers
	// and what is simulated, and move the clock of a cluster in memory.
	Lessons bool
	// Authentication, Encryption and Audit are as the flags of `setpoint server`.
	Authentication authconfig.Config
	// AuthorizationFile is an AuthorizationConfiguration: webhooks beside Node and RBAC, as the flag --authorization-config; "": none.
	AuthorizationFile string
	Encryption        encryption.Options
	Audit             auditlog.Config
	// Logger; nil: silence.
	Logger *slog.Logger
}

var (
	errReplicas  = fmt.Errorf("--servers must be 1 to %d", maxReplicas)
	errSimulated = fmt.Errorf("--simulated-nodes must be 0 to %d", maxSimulatedNodes)
	errPort      = errors.New("--port must be 0 to 65535")
	errInMemory  = errors.New("a cluster in memory has no DataDir, no Port and no OpenToPods")
)

// Validate says what is wrong, in the words of `setpoint dev`'s flags.
func (c *Config) Validate() error {
	_, err := c.parse()
	return err
}

// parse checks everything, and reads the settings of the cluster.
func (c *Config) parse() (settings.Cluster, error) {
	switch {
	case c.Replicas < 0 || c.Replicas > maxReplicas:
		return settings.Cluster{}, errReplicas
	case c.SimulatedNodes < 0 || c.SimulatedNodes > maxSimulatedNodes:
		return settings.Cluster{}, errSimulated
	case c.Port < 0 || c.Port > 65535:
		return settings.Cluster{}, errPort
	case c.InMemory && (c.DataDir != "" || c.Port != 0 || c.OpenToPods):
		return settings.Cluster{}, errInMemory
	}
	cluster, err := c.settings().Parse()
	return cluster, errors.Join(
		err, access.Validate(c.Authentication, c.AuthorizationFile), c.Audit.Validate(), c.Encryption.Validate())
}

// settings are those of the whole cluster.
func (c *Config) settings() settings.Options {
	return settings.Options{
		PodCIDR: c.PodCIDR, NodeMaskSize: c.NodeMaskSize, NodeMaskSize6: c.NodeMaskSize6, ServiceCIDR: c.ServiceCIDR,
		LoadBalancerAddresses: c.LoadBalancerAddresses, ServiceExternalIPs: c.ServiceExternalIPs,
		SchedulerConfig: c.SchedulerConfig, DNS: c.DNS, GatewayAPI: c.GatewayAPI, LocalVolumes: c.LocalVolumes,
	}
}

// A Cluster runs in this process. Its methods may be called from any goroutine.
type Cluster struct {
	config   Config
	settings settings.Cluster // as config says
	trust    *trust.Cluster
	// memories and network are of a cluster in memory.
	memories []*server.Memory
	network  *memoryNetwork
	clock    *clusterclock.Clock
	outage   simulated.Outage
	// played, of a cluster of a backup, says which of its nodes live; nil: sessions and Leases do.
	played   *power
	replicas replicas
	forPods  []*podlistener.Listener
	// machine is the machine's own address; "": it has none but loopback.
	machine string
	audit   *auditlog.Log
	nodes   errgroup.Group
	// failed holds the first failure of the simulated nodes, and of servers that a lesson started again, until Wait reads it.
	failed  chan error
	lessons lessons
	// watchers wait for failures of servers that a lesson started again.
	watchers  sync.WaitGroup
	stopNodes context.CancelFunc
	running   context.Context    // until Stop or the end of Start's
	cancel    context.CancelFunc // of all else
	ends      []func() error     // in reverse order
	stop      sync.Once
	stopError error
}

// Start starts a cluster and returns when its replicas listen; Ready tells when they serve. It
// runs until Stop or the end of ctx; Stop must be called in any case.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	meant, err := config.parse()
	if err != nil {
		return nil, err
	}
	config.Replicas = max(config.Replicas, 1)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{config: config, settings: meant}
	if config.InMemory {
		c.clock = clusterclock.New(0)
		for range config.Replicas {
			c.memories = append(c.memories, server.NewMemory(config.Replicas == 1))
		}
	}
	return c.start(ctx)
}

func (c *Cluster) start(ctx context.Context) (*Cluster, error) {
	c.failed = make(chan error, 1)
	ctx, c.cancel = context.WithCancel(ctx)
	c.running = ctx
	ofNodes, stopNodes := context.WithCancel(ctx)
	c.stopNodes = stopNodes
	c.lessons = lessons{cluster: c, life: ofNodes}
	if err := errors.Join(c.openDir(), c.openAudit()); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.startServers(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if c.config.SimulatedNodes > 0 || c.played != nil && len(c.played.played.Nodes) > 0 {
		c.nodes.Go(func() error {
			err := c.simulate(ofNodes)
			c.fail(err)
			return err
		})
	}
	return c, nil
}

// fail has Wait end with the error, unless it is nil or another failure waits already to be read.
func (c *Cluster) fail(err error) {
	if err == nil {
		return
	}
	select {
	case c.failed <- err:
	default: // nobody need read it: whoever waits ends with the other
	}
}

// openDir makes the data directory this process's.
func (c *Cluster) openDir() error {
	if c.config.InMemory {
		return nil
	}
	if c.config.DataDir == "" {
		dir, err := os.MkdirTemp("", "setpoint-")
		if err != nil {
			return err
		}
		c.config.DataDir = dir
		c.ends = append(c.ends, func() error { return os.RemoveAll(dir) })
	}
	unlock, err := process.Lock(c.config.DataDir, process.ServerRole)
	if err != nil {
		return err
	}
	c.ends = append(c.ends, func() error { unlock(); return nil })
	return nil
}

func (c *Cluster) openAudit() error {
	c.config.Audit.Logger = c.config.Logger
	log, stop, err := auditlog.Start(c.config.Audit)
	if err != nil {
		return err
	}
	c.audit = log
	c.ends = append(c.ends, stop)
	return nil
}

func (c *Cluster) startServers(ctx context.Context) error {
	listeners, addresses, err := c.listen()
	if err != nil {
		return err
	}
	forPods := c.listenForPods(listeners, addresses)
	if err = c.openTrust(addresses); err != nil {
		return errors.Join(err, closeAll(listeners), closeAll(forPods))
	}
	processor, taught := c.processor(), &c.lessons
	for i, address := range addresses {
		config := server.Config{
			Processor: processor, OneProcess: true,
			Name: address.Name, DataDir: c.serverDir(i), Trust: c.trustOf(i), InitialServers: addresses,
			Listener: listeners[i], PodListener: forPods[i], APIOnly: c.config.APIOnly, Loops: c.config.Loops,
			Clock: c.Clock(), Intercept: c.config.Intercept, DisabledAdmission: c.config.DisabledAdmission,
			EnabledAdmission: c.config.EnabledAdmission, Logger: c.config.Logger,
			Cluster: c.settings, Authentication: c.config.Authentication, AuthorizationFile: c.config.AuthorizationFile,
			Encryption: c.config.Encryption, AuditLog: c.audit,
		}
		if c.config.Lessons {
			config.Pace, config.Lessons = &pace.Pace{}, taught
		}
		if c.played != nil {
			config.Liveness, config.DialOutside = c.played, nothingOutside
		}
		if c.config.InMemory {
			config.Memory, config.Dial = c.memories[i], c.network.dialer(address.Endpoint)
		}
		if err := c.replicas.start(ctx, i, config); err != nil { // it has closed its own
			return errors.Join(err, closeAll(listeners[i+1:]), closeAll(forPods[i+1:]))
		}
	}
	return nil
}

// processor is what all servers of this process share, or nil.
func (c *Cluster) processor() *cpushare.Share {
	if !c.config.DivideProcessor {
		return nil
	}
	return cpushare.New(cpushare.Process())
}

// openTrust makes the trust material, or reads it; that of a fork is its origin's, with keys of its own.
func (c *Cluster) openTrust(addresses []trust.Server) (err error) {
	switch {
	case c.trust != nil:
	case c.config.InMemory:
		c.trust, err = trust.NewCluster(c.Clock().Now())
	default:
		c.trust, err = trust.InitCluster(c.config.DataDir, addresses, time.Now())
	}
	return err
}

// trustOf is what a replica holds: in memory each rotates its keys by itself, as servers with folders of their own do.
func (c *Cluster) trustOf(i int) *trust.Cluster {
	if c.config.InMemory && i > 0 {
		return c.trust.Copied()
	}
	return c.trust
}

// listenForPods opens ways in for pods of this machine, and writes down where they are.
func (c *Cluster) listenForPods(listeners []net.Listener, addresses []trust.Server) []net.Listener {
	forPods := make([]net.Listener, len(listeners))
	for i := range listeners {
		if !c.config.OpenToPods {
			break
		}
		if listener, address := podlistener.Open(listeners[i], c.settings.PodNetwork.Or(podnetwork.Default()).CIDR); listener != nil {
			forPods[i], addresses[i].Addresses = listener, []string{address}
			c.forPods, c.machine = append(c.forPods, listener), address
		}
	}
	return forPods
}

// serverDir: the first replica keeps its state in the data directory itself.
func (c *Cluster) serverDir(i int) string {
	if i == 0 {
		return c.config.DataDir
	}
	return filepath.Join(c.config.DataDir, "server-"+strconv.Itoa(i+1))
}

// Ready waits until every replica answers reads and writes.
func (c *Cluster) Ready(ctx context.Context) error {
	for _, replica := range c.replicas.up() {
		if err := replica.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Wait blocks until a replica or the simulated nodes fail, or ctx ends. A replica that crashed has failed.
func (c *Cluster) Wait(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	for _, replica := range c.replicas.all() {
		group.Go(func() error { return replica.Wait(ctx) })
	}
	return group.Wait()
}

// Kubeconfig is the path of a file with the administrator's credentials and one context for
// each replica. A cluster in memory has none; see Listen.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.config.DataDir, trust.AdminKubeconfig) }

// RESTConfig is the administrator's client of the first replica, over its port if it has one. It sends as many
// requests as its user asks for: client-go's own limit of 5 a second is off.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	if c.config.InMemory {
		return c.ClientConfig(&user.DefaultInfo{Name: "admin", Groups: []string{trust.GroupMasters}}), nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Stop stops all replicas at once: one after the other they would elect leaders that are about
// to stop. It waits for all that Start began, and takes away a temporary directory.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.stopNodes()
		c.lessons.await()
		errs := []error{c.nodes.Wait()}
		var group errgroup.Group
		for _, replica := range c.replicas.end() {
			group.Go(replica.Stop)
		}
		errs = append(errs, group.Wait(), c.replicas.awaitCrashed())
		c.cancel()
		c.watchers.Wait()
		for i := range c.ends {
			errs = append(errs, c.ends[len(c.ends)-1-i]())
		}
		c.stopError = errors.Join(errs...)
	})
	return c.stopError
}

// simulate runs the simulated nodes.
func (c *Cluster) simulate(ctx context.Context) error {
	if err := c.replicas.first().Ready(ctx); err != nil {
		return nil // ctx has ended
	}
	client, err := c.client(simulated.User, trust.GroupServers)
	if err != nil {
		return err
	}
	config := simulated.Config{
		Client: client, Nodes: c.config.SimulatedNodes, PodCIDRs: true, Clock: c.Clock(), Outage: &c.outage, Logger: c.config.Logger,
	}
	if c.played != nil {
		config.Adopted, config.Habit, config.NamePrefix = c.played.names(), c.played.played.Habit, PlayedPrefix
		if c.readsServer() {
			config.Informers = c.replicas.first().Informers()
		}
	}
	return simulated.Run(ctx, config)
}

// readsServer reports whether the simulated nodes read the objects of a server, and not their own: those of a backup's cluster, whose
// servers are not crashed.
func (c *Cluster) readsServer() bool { return c.played != nil && !c.config.Lessons }

// client speaks to the first replica that runs, without a socket.
func (c *Cluster) client(name, group string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(c.configOf(name, group))
}

func (c *Cluster) configOf(name, group string) *rest.Config {
	return c.replicas.config(&user.DefaultInfo{Name: name, Groups: []string{group, user.AllAuthenticated}})
}
