package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/apparmor"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/demoimage"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/executable"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/registries"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/streams"
)

var (
	_ cri.Runtime  = (*Runtime)(nil)
	_ cri.Streamer = (*Runtime)(nil)
	_ cri.Limited  = (*Runtime)(nil)
)

// Config of a Runtime. DataDir and Logger are required.
type Config struct {
	// DataDir holds images, sandboxes and containers; on a file system that can hold overlays.
	DataDir string
	// ImagesDir is a folder with image archives to load; empty means none.
	ImagesDir string
	// Registries says from where images are fetched.
	Registries registries.Config
	// NodeName keeps the cgroups of several agents on one machine apart.
	NodeName string
	// GivenCgroups: the cgroup parents of pods are the machine's, made and removed by whoever names them, as kubelets do. Otherwise
	// they are below the node's group.
	GivenCgroups bool
	// PodCIDR may be set later, by SetPodCIDR or UpdateRuntimeConfig; until then pods need the host's network.
	PodCIDR netip.Prefix
	// ClusterCIDR covers the pods of all nodes; invalid means PodCIDR.
	ClusterCIDR netip.Prefix
	// ServiceCIDR covers the Services' addresses, which this machine reaches over the bridge; invalid: over its default route.
	ServiceCIDR netip.Prefix
	// Bridge is the pod bridge's name; empty means network.DefaultBridge.
	Bridge string
	// ShimExecutable is what runs as shim and container init; empty means this executable. It must call ReexecMain.
	ShimExecutable string
	// NoDemoImage leaves the demo images out; DemoExecutable is what they contain, empty means this executable.
	NoDemoImage    bool
	DemoExecutable string
	// CDIDirs hold the specs of CDI devices; none means /etc/cdi and /var/run/cdi.
	CDIDirs []string
	// PodPIDsMax is how many processes a pod may have; 0: a part of the machine's.
	PodPIDsMax int64
	// ReservedMemoryBytes and ReservedPIDs of the machine all pods together cannot have.
	ReservedMemoryBytes, ReservedPIDs int64
	Logger                            *slog.Logger
}

// Admission may keep a pod from being connected at an address.
type Admission func(ctx context.Context, pod *runtimeapi.PodSandboxConfig, addresses []netip.Addr) error

// Runtime implements cri.Runtime and cri.Streamer: the lives of sandboxes and containers. What there is, what CRI is told of it, images,
// control groups and the server of streams are owned by types of their own.
type Runtime struct {
	*table
	*reporter
	*imageService
	*groups
	streams *streams.Server

	config     Config
	images     *images.Store
	network    *network.Network
	executable *executable.Executable
	apparmor   *apparmor.Host
	selinux    *selinux.Host
	events     *events
	ctx        context.Context
	cancel     context.CancelFunc
	background sync.WaitGroup

	admit atomic.Pointer[Admission]

	closed    atomic.Bool
	preflight preflight
	usersOnce sync.Once
	usersErr  error // why no pod can have a user namespace
}

// ReexecMain runs the hidden role that this process was started for and then ends the process. In an ordinary process
// it returns at once. Call it before anything else in main.
func ReexecMain() { shim.Dispatch() }

// inheritedFDMin is the first descriptor after the standard streams.
const inheritedFDMin = 3

// New opens the data directory, loads image archives and takes over the pods that are still running.
func New(config Config) (*Runtime, error) {
	if os.Geteuid() != 0 {
		return nil, ErrNotRoot
	}
	if config.DataDir == "" || config.Logger == nil {
		return nil, errors.New("embedded runtime: DataDir and Logger are required")
	}
	absolute, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embedded runtime: %w", err)
	}
	config.DataDir = absolute
	if config.NodeName == "" {
		config.NodeName = "node"
	}
	// Whatever this process was started with, a folder of the host perhaps, is for none of its children.
	if err := unix.CloseRange(inheritedFDMin, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("embedded runtime: close inherited descriptors in children: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // ends with Close: the watchers belong to no call
	r := &Runtime{
		config: config, ctx: ctx, cancel: cancel, events: newEvents(), apparmor: apparmor.New(), selinux: selinux.New(),
		table: newTable(),
	}
	r.groups = &groups{config: &r.config, table: r.table}
	r.streams = streams.New(cri.StreamingRuntime(r), config.Logger)
	if err := r.open(); err != nil {
		cancel()
		return nil, fmt.Errorf("embedded runtime: %w", err)
	}
	return r, nil
}

func (r *Runtime) open() error {
	for _, dir := range []string{r.config.DataDir, r.sandboxesDir(), r.containersDir()} {
		if err := private.Folder(dir); err != nil {
			return err
		}
	}
	if err := checkFileSystem(r.config.DataDir); err != nil {
		return err
	}
	if err := cgroup.PrepareContainer(); err != nil {
		return err
	}
	var err error
	if r.executable, err = executable.Open(r.config.ShimExecutable); err != nil {
		return err
	}
	if err := r.openImages(); err != nil {
		return err
	}
	if err := r.apparmor.Prepare(); err != nil {
		r.config.Logger.Warn("containers that name no AppArmor profile run without one", "err", err)
	}
	r.network = network.New(network.Config{
		Bridge: r.config.Bridge, Ranges: network.Ranges{Pods: r.config.ClusterCIDR, Services: r.config.ServiceCIDR},
		StateDir: r.config.DataDir, Logger: r.config.Logger,
	})
	if err := r.recover(); err != nil {
		return err
	}
	if r.config.PodCIDR.IsValid() {
		return r.SetPodCIDR(r.config.PodCIDR, netip.Prefix{})
	}
	return nil
}

// checkFileSystem refuses at the start what would fail at every container.
func checkFileSystem(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return fmt.Errorf("data directory %s: %w", dir, boot.ErrOverlayOnOverlay)
	}
	return nil
}

func (r *Runtime) openImages() error {
	var err error
	r.images, err = images.Open(images.Config{
		Dir: filepath.Join(r.config.DataDir, "images"), ArchivesDir: r.config.ImagesDir, Registries: r.config.Registries, Logger: r.config.Logger,
	})
	if err != nil {
		return err
	}
	r.imageService = &imageService{store: r.images, table: r.table, containersDir: r.containersDir(), logger: r.config.Logger}
	r.reporter = &reporter{table: r.table, images: r.images, containersDir: r.containersDir()}
	if err := r.images.LoadArchives(); err != nil {
		r.config.Logger.Warn("image archives", "err", err)
	}
	if r.config.NoDemoImage {
		return nil
	}
	if static, err := demoimage.Static(r.config.DemoExecutable); err == nil && !static {
		r.config.Logger.Warn("this executable is not static: the demo images will not run (build with CGO_ENABLED=0)")
	}
	demos, err := demoimage.Build(r.config.DemoExecutable)
	if err != nil {
		return err
	}
	for _, demo := range demos {
		if _, err := r.images.AddLocal(demo); err != nil { // on a full disk an agent has to start all the same
			r.config.Logger.Warn("demo images", "err", err)
			break
		}
	}
	return nil
}

// SetPodCIDR gives the node its pod addresses, those of IPv6 from second if it is valid; the same prefixes again do nothing. Pods that an
// earlier life of the node gave others end: nobody reaches them. Whoever wants them makes them anew.
func (r *Runtime) SetPodCIDR(prefix, second netip.Prefix) error {
	if err := r.network.SetPodCIDR(prefix, second); err != nil {
		return err
	}
	var errs []error
	for _, s := range r.unreachable() {
		r.config.Logger.Warn("a pod ends whose address is not of this node's range", "sandbox", s.id, "address", s.endpoint().Address)
		errs = append(errs, r.stopSandbox(r.ctx, s))
	}
	return errors.Join(errs...)
}

// unreachable are the sandboxes with addresses of other ranges than the node's.
func (r *Runtime) unreachable() (all []*sandbox) {
	for _, s := range r.allSandboxes() {
		if endpoint := s.endpoint(); endpoint.Address.IsValid() && !r.network.Has(endpoint) {
			all = append(all, s)
		}
	}
	return all
}

func (s *sandbox) endpoint() network.Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Endpoint
}

// SetRanges says where pods and Services have their addresses from, before SetPodCIDR; later it changes nothing.
func (r *Runtime) SetRanges(ranges network.Ranges) { r.network.SetRanges(ranges) }

// Admit makes the runtime ask before it connects a pod to the network; one that is not admitted fails, and is tried again.
func (r *Runtime) Admit(ask Admission) { r.admit.Store(&ask) }

// Network is the node's pod network.
func (r *Runtime) Network() *network.Network { return r.network }

// LoadImages looks at the images folder again.
func (r *Runtime) LoadImages() error { return r.images.LoadArchives() }

func (r *Runtime) sandboxesDir() string  { return filepath.Join(r.config.DataDir, "sandboxes") }
func (r *Runtime) containersDir() string { return filepath.Join(r.config.DataDir, "containers") }

// Close stops watching and streaming. Pods go on running; a later New finds them.
func (r *Runtime) Close(context.Context) error {
	if r.closed.Swap(true) {
		return nil
	}
	r.cancel()
	err := r.streams.Close()
	r.background.Wait()
	r.events.close()
	return errors.Join(err, r.executable.Close())
}

// Uninstall removes the bridge and the nftables table of a closed runtime without pods.
func (r *Runtime) Uninstall() error { return r.network.Remove() }
