package agent

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/measure"
	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/router"
	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/agent/pods"
	"github.com/setpoint-io/setpoint/agent/pods/eviction"
	"github.com/setpoint-io/setpoint/agent/pods/shutdown"
	"github.com/setpoint-io/setpoint/agent/pods/staticpods"
	"github.com/setpoint-io/setpoint/agent/resources/claims"
	"github.com/setpoint-io/setpoint/agent/resources/devices"
	"github.com/setpoint-io/setpoint/agent/resources/pinning"
	"github.com/setpoint-io/setpoint/agent/runtime/collect"
	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// Run is the agent until ctx ends. It returns early only when its own Config or
// machine is at fault; an API server that is away is waited for.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.setDefaults(); err != nil {
		return err
	}
	for _, dir := range (podconfig.Dirs{Root: cfg.DataDir}).All() {
		if err := private.Folder(dir); err != nil {
			return fmt.Errorf("agent: data directory: %w", err)
		}
	}
	listener, err := cfg.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	stopping := ctx.Done()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // pods may have to end first
	defer cancel()
	var children sync.WaitGroup
	defer children.Wait()
	defer cancel()
	a := &agent{
		Config: cfg, port: portOf(listener), changed: make(chan struct{}, 1), stopping: stopping, cancel: cancel,
		asked: router.NewMetrics(), book: reserved.New(),
	}
	if err := a.openLogs(); err != nil {
		return err
	}
	if err := a.openStorage(ctx, &children); err != nil {
		return err
	}
	if err := a.openPinning(ctx, &children); err != nil {
		return err
	}
	if err := a.openUsers(); err != nil {
		return err
	}
	children.Go(func() { _ = node.Run(ctx, a.nodeConfig(ctx)) })
	return a.run(ctx, &children, listener)
}

// agent is one running agent.
type agent struct {
	Config
	port int
	// changed makes the node's status be looked at: at once Ready means pods at
	// once. It holds one: more would say the same.
	changed chan struct{}
	// pressure is what the node reports, and why it rejects pods.
	pressure eviction.Conditions
	// shutdown says whether the machine shuts down.
	shutdown shutdown.State
	// stopping is closed when the agent has to end, cancel is called when it can.
	stopping <-chan struct{}
	cancel   context.CancelFunc
	storage
	// devices are those of device plugins; nil on a node that uses none.
	devices *devices.Manager
	// pinning gives containers CPUs and memory of their own; nil: no policy says so.
	pinning *pinning.Manager
	// formerLogs are where logs of older pods may be.
	formerLogs []string
	// claims are those of DRA drivers; nil with devices.
	claims *claims.Manager
	// manager runs the pods, once it is there: drivers and plugins that are found earlier tell it of pods.
	manager atomic.Pointer[pods.Manager]
	// asked counts what is asked of the ports of Ingresses and Gateways.
	asked *router.Metrics
	// ingressPorts and namePorts are those of Ingresses and of the cluster's DNS that other software has.
	ingressPorts, namePorts takenPorts
	// users are those of the pods with user namespaces.
	users *userns.Ranges
	// ports are what pods and Gateways have of this machine's.
	ports ownPorts
	// book knows which addresses and ports of machines are the cluster's own.
	book *reserved.Book
	// firewall is what other software of this machine blocks; nil: that is not known.
	firewall atomic.Pointer[nodefirewall.Problem]
	// podNetwork is where pods and Services have their addresses from, once it is known.
	podNetwork atomic.Pointer[PodNetwork]
}

func (c *Config) listen() (net.Listener, error) {
	if c.Listener != nil {
		return c.Listener, nil
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", c.Port))
	if err != nil {
		return nil, fmt.Errorf("agent: kubelet endpoints: %w", err)
	}
	return l, nil
}

// run waits for the pod network, then runs pods and serves their endpoints.
func (a *agent) run(ctx context.Context, children *sync.WaitGroup, listener net.Listener) error {
	nodes := informers.NewSharedInformerFactory(a.Client, 0)
	if a.SetPeers == nil {
		nodes = informers.NewSharedInformerFactoryWithOptions(a.Client, 0, onlySelf(a.NodeName))
	}
	watch := newNodeWatch(&a.Config, nodes, a.look)
	a.watch.Store(watch)
	nodes.StartWithContext(ctx)
	defer nodes.Shutdown()
	a.shareLayers(watch)
	runner := a.newPodRunner(ctx, children, watch, nodes)
	manager := runner.manager
	children.Go(func() { a.serve(ctx, listener, runner) })
	a.watchMemory(ctx, children)
	a.tellResources(ctx, children, manager)
	a.tellPods(ctx, children, runner)
	a.endPods(ctx, children, manager)
	images := collect.New(a.collectConfig(ctx))
	children.Go(func() { images.Run(ctx) })
	children.Go(func() { eviction.Run(ctx, a.evictionConfig(ctx, manager, images)) })
	children.Go(func() { logs.Rotate(ctx, a.logsConfig()) })
	a.runStaticPods(ctx, children, manager, watch)
	a.awaitPodCIDR(ctx, watch)
	if a.Started != nil && ctx.Err() == nil {
		a.Started(manager.Progress)
	}
	return runner.start(ctx)
}

// endPods ends pods before the machine shuts down and, if that was asked for, before the agent ends.
func (a *agent) endPods(ctx context.Context, children *sync.WaitGroup, manager *pods.Manager) {
	ending := shutdown.New(shutdown.Config{
		NodeName: a.NodeName, Periods: a.Settings.Shutdown, Pods: manager, State: &a.shutdown, Changed: a.look, Connect: shutdown.SystemLogind,
		Events: events.NewRecorder(ctx, a.Client, a.NodeName), Logger: a.Logger,
	})
	children.Go(func() { ending.Run(ctx) })
	children.Go(func() {
		select {
		case <-ctx.Done():
		case <-a.stopping:
			if a.EndPodsOnStop {
				ending.End(ctx)
			}
			a.cancel()
		}
	})
}

// runStaticPods starts those of the folder before the API has told of any pod: what it does not know is removed then.
func (a *agent) runStaticPods(ctx context.Context, children *sync.WaitGroup, manager *pods.Manager, watch *nodeWatch) {
	complete := a.CompletePod
	if complete == nil {
		complete = func(*corev1.Pod) error { return nil }
	}
	keeper := staticpods.New(staticpods.Config{
		Path: a.Settings.StaticPods, NodeName: a.NodeName, Client: a.Client, Pods: manager, Complete: complete, NodeUID: watch.uid,
		Every: a.Settings.StaticPodsEvery, Logger: a.Logger,
	})
	keeper.Round(ctx)
	children.Go(func() { keeper.Run(ctx) })
}

func (a *agent) collectConfig(ctx context.Context) collect.Config {
	return collect.Config{
		NodeName: a.NodeName, Runtime: a.Runtime, Policy: a.Settings.Images, Events: events.NewRecorder(ctx, a.Client, a.NodeName),
		Disk: measure.Disk, Logger: a.Logger,
	}
}

// evictionConfig: a disk is freed of what has ended and of images that nobody uses before pods have to go.
func (a *agent) evictionConfig(ctx context.Context, manager *pods.Manager, images *collect.Collector) eviction.Config {
	disk := eviction.Disk{Runtime: a.Runtime, Dirs: a.dirs()}
	machine := eviction.Machine{Runtime: a.Runtime, DataDir: a.DataDir, ReservedBytes: a.Settings.Reserved.Memory().Value()}
	return eviction.Config{
		NodeName: a.NodeName, Policy: a.Settings.Eviction, Pods: manager, Observe: machine.Observe, Measure: disk.Measure, Live: machine.Live,
		Reclaim: func(ctx context.Context) error {
			manager.RemoveFinished(ctx)
			return images.RemoveUnused(ctx)
		},
		Conditions: &a.pressure, Changed: a.look, Events: events.NewRecorder(ctx, a.Client, a.NodeName), Logger: a.Logger,
	}
}

// networkRetry is the pause after the pod network could not be set up.
const networkRetry = time.Second

// networkTellInterval is how often the log says that it still cannot be.
const networkTellInterval = time.Minute

// awaitPodCIDR hands the pod CIDR to the runtime once a controller has set it.
// No pod starts before: its address would come from nowhere.
func (a *agent) awaitPodCIDR(ctx context.Context, watch *nodeWatch) {
	select {
	case <-ctx.Done():
		return
	case cidr := <-watch.cidr:
		var told time.Time
		for {
			err := a.usePodCIDR(ctx, watch, cidr)
			if err == nil {
				break
			}
			if time.Since(told) >= networkTellInterval {
				told = time.Now()
				a.Logger.Error("cannot set up the pod network", "cidr", cidr, "err", err, "nextTry", networkRetry)
			}
			if !wait.For(ctx, networkRetry) {
				return
			}
			select {
			case cidr = <-watch.cidr:
			default:
			}
		}
	}
	a.look()
}

// look makes the node's keeper look at once; one that is about to needs no more.
func (a *agent) look() {
	a.csiNode.Look()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// usePodCIDR takes only ranges that the cluster's nodes have.
func (a *agent) usePodCIDR(ctx context.Context, watch *nodeWatch, cidrs string) error {
	var podNetwork PodNetwork
	if a.PodNetwork != nil {
		var err error
		if podNetwork, err = a.PodNetwork(ctx); err != nil {
			return err
		}
	}
	watch.believe(podNetwork)
	a.podNetwork.Store(&podNetwork)
	a.reserveRanges(podNetwork)
	a.look() // the Node has a second address now, maybe
	if !podNetwork.has(cidrs) {
		return fmt.Errorf("%w: %s is not %s", errForeignRange, cidrs, podNetwork)
	}
	cfg := &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: cidrs}}
	return a.Runtime.UpdateRuntimeConfig(ctx, cfg)
}

func (a *agent) nodeConfig(ctx context.Context) node.Config {
	version := a.runtimeVersion(ctx)
	cfg := node.Config{
		Name: a.NodeName, Client: a.Client, Addresses: a.addresses, Labels: a.nodeLabels(),
		Version: a.Version, RuntimeVersion: version, Port: int32(a.port),
		Annotations: a.annotations, Conditions: func() []corev1.NodeCondition { return a.conditions(ctx) },
		MaxPods: a.Settings.MaxPods, Allocatable: a.Settings.Allocatable, Enforced: strings.HasPrefix(version, embeddedRuntime),
		Claim:  a.Claim,
		Taints: a.Settings.Taints, CheckInterval: a.Settings.StatusCheckEvery, StatusInterval: a.Settings.StatusReportEvery,
		ImagesMax: a.Settings.ImagesMax,
		Pressure:  a.pressure.Now,
		DataDir:   a.DataDir, LeaseInterval: a.LeaseInterval, Logger: a.Logger, Registered: a.registered, Changed: a.changed,
		Ready:  a.ready,
		Images: a.images, Runtime: a.runtimeFeatures, VolumesInUse: a.volumesInUse,
		Events: events.NewRecorder(ctx, a.Client, a.NodeName),
	}
	if a.devices != nil {
		cfg.Devices, cfg.ForgetExtended = a.devices.Counts, a.devices.Fresh()
	}
	return cfg
}

func (a *agent) ready(ctx context.Context) error {
	if a.shutdown.Now() {
		return shutdown.ErrNow
	}
	return runtimeReady(ctx, a.Runtime)
}
