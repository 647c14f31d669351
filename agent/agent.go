package agent

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/collect"
	"github.com/setpoint-io/setpoint/agent/events"
	"github.com/setpoint-io/setpoint/agent/eviction"
	"github.com/setpoint-io/setpoint/agent/images"
	"github.com/setpoint-io/setpoint/agent/kubeletapi"
	"github.com/setpoint-io/setpoint/agent/logs"
	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/agent/podconfig"
	"github.com/setpoint-io/setpoint/agent/pods"
	"github.com/setpoint-io/setpoint/agent/private"
	"github.com/setpoint-io/setpoint/agent/services"
	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/agent/status"
	"github.com/setpoint-io/setpoint/agent/volumes"
	"github.com/setpoint-io/setpoint/agent/wait"
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var children sync.WaitGroup
	defer children.Wait()
	defer cancel()
	a := &agent{Config: cfg, port: portOf(listener), changed: make(chan struct{}, 1), pressure: &node.Pressure{}}
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
	pressure *node.Pressure
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
	nodes.StartWithContext(ctx)
	defer nodes.Shutdown()
	manager, start := a.pods(ctx, children, watch)
	children.Go(func() { a.serve(ctx, listener, manager) })
	children.Go(func() {
		disk := eviction.Disk{Runtime: a.Runtime, Dirs: podconfig.Dirs{Root: a.DataDir}}
		eviction.Run(ctx, eviction.Config{Pods: manager, Measure: disk.Measure, Logger: a.Logger})
	})
	children.Go(func() { a.collectImages(ctx) })
	children.Go(func() {
		logs.Rotate(ctx, logs.Config{Runtime: a.Runtime, Logger: a.Logger})
	})
	a.awaitPodCIDR(ctx, watch)
	return start(ctx)
}

// pods builds the pod manager; start runs it until ctx ends.
func (a *agent) pods(ctx context.Context, children *sync.WaitGroup, watch *nodeWatch) (m *pods.Manager, start func(context.Context) error) {
	everywhere := informers.NewSharedInformerFactory(a.Client, 0)
	a.translateServices(ctx, children, everywhere)
	bound := informers.NewSharedInformerFactoryWithOptions(a.Client, 0, informers.WithTweakListOptions(a.boundHere))
	lookup := &objects{
		client:   a.Client,
		nodeName: a.NodeName,
		services: everywhere.Core().V1().Services().Lister(),
		synced:   everywhere.Core().V1().Services().Informer().HasSynced,
	}
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	sender := status.NewManager(status.Config{Client: a.Client, Logger: a.Logger})
	children.Go(func() { sender.Run(ctx) })
	dirs := podconfig.Dirs{Root: a.DataDir}
	m = pods.New(pods.Config{
		NodeName: a.NodeName, Client: a.Client, Runtime: a.Runtime, RuntimeName: a.runtimeName(ctx),
		HostIPs: []string{a.NodeIP.String()}, Dirs: dirs, DNS: podconfig.DNS{Servers: a.ClusterDNS, Domain: a.ClusterDomain},
		Objects: lookup, Events: recorder, Status: sender,
		Images:      images.New(images.Config{Service: a.Runtime, Events: recorder, Dir: dirs.ImageAccess(), Secret: lookup.Secret}),
		Volumes:     volumes.New(volumes.Config{Objects: lookup, Dirs: dirs, WithoutMounts: a.WithoutMounts, Warn: warnOn(recorder)}),
		Pressure:    a.pressure.Now,
		Allocatable: watch.allocatable, RuntimeHandler: lookup.RuntimeHandler, UserAgent: "kube-probe/1.37", Logger: a.Logger,
	})
	return m, func(ctx context.Context) error {
		informer := bound.Core().V1().Pods().Informer()
		everywhere.StartWithContext(ctx)
		defer everywhere.Shutdown()
		bound.StartWithContext(ctx)
		defer bound.Shutdown()
		return m.Run(ctx, informer)
	}
}

func (a *agent) collectImages(ctx context.Context) {
	collect.Run(ctx, collect.Config{
		NodeName: a.NodeName, Runtime: a.Runtime, Policy: a.ImageCollection, Events: events.NewRecorder(ctx, a.Client, a.NodeName),
		Disk: node.Disk, Logger: a.Logger,
	})
}

// warnOn records a warning on a pod.
func warnOn(recorder events.Recorder) func(pod *corev1.Pod, reason, message string) {
	return func(pod *corev1.Pod, reason, message string) {
		recorder.Event(events.Pod(pod), corev1.EventTypeWarning, reason, message)
	}
}

// translateServices follows the Services if the network wants to know.
func (a *agent) translateServices(ctx context.Context, children *sync.WaitGroup, everywhere informers.SharedInformerFactory) {
	if a.SetServices == nil {
		return
	}
	run := services.Watch(services.Config{Informers: everywhere, Set: a.SetServices, Logger: a.Logger})
	children.Go(func() { run(ctx) })
}

// boundHere selects this node's pods, and never from what some replica happens
// to have: a list of yesterday would start pods that are gone and end those that
// are new. Without a version to start from, reads are linearizable.
func (a *agent) boundHere(o *metav1.ListOptions) {
	o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", a.NodeName).String()
	if o.ResourceVersion == "0" {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
}

// networkRetry is the pause after the pod network could not be set up.
const networkRetry = time.Second

// awaitPodCIDR hands the pod CIDR to the runtime once a controller has set it.
// No pod starts before: its address would come from nowhere.
func (a *agent) awaitPodCIDR(ctx context.Context, watch *nodeWatch) {
	select {
	case <-ctx.Done():
		return
	case cidr := <-watch.cidr:
		for {
			err := a.usePodCIDR(ctx, watch, cidr)
			if err == nil {
				break
			}
			a.Logger.Error("cannot set up the pod network", "cidr", cidr, "err", err)
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
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// usePodCIDR takes only a range that the cluster's nodes have.
func (a *agent) usePodCIDR(ctx context.Context, watch *nodeWatch, cidr string) error {
	var podNetwork PodNetwork
	if a.PodNetwork != nil {
		var err error
		if podNetwork, err = a.PodNetwork(ctx); err != nil {
			return err
		}
	}
	watch.believe(podNetwork)
	if !podNetwork.has(cidr) {
		return fmt.Errorf("%w: %s is not a /%d of %s", errForeignRange, cidr, podNetwork.NodeMaskSize, podNetwork.PodCIDR)
	}
	cfg := &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: cidr}}
	return a.Runtime.UpdateRuntimeConfig(ctx, cfg)
}

func (a *agent) nodeConfig(ctx context.Context) node.Config {
	return node.Config{
		Name: a.NodeName, Client: a.Client, Addresses: a.Addresses, Labels: a.Labels,
		Version: a.Version, RuntimeVersion: a.runtimeVersion(ctx), Port: int32(a.port), MaxPods: a.MaxPods,
		Pressure: a.pressure,
		DataDir:  a.DataDir, LeaseInterval: a.LeaseInterval, Logger: a.Logger, Registered: a.Registered, Changed: a.changed,
		Ready:  func(ctx context.Context) error { return runtimeReady(ctx, a.Runtime) },
		Images: a.images,
	}
}

// runtimeName prefixes container ids.
func (a *agent) runtimeName(ctx context.Context) string {
	v, err := a.Runtime.Version(ctx, "v1")
	if err != nil || v.RuntimeName == "" {
		return "setpoint"
	}
	return v.RuntimeName
}

func (a *agent) runtimeVersion(ctx context.Context) string {
	v, err := a.Runtime.Version(ctx, "v1")
	if err != nil {
		return ""
	}
	return v.RuntimeName + "://" + v.RuntimeVersion
}

// images lists what the runtime holds, for the Node's status.
func (a *agent) images(ctx context.Context) []corev1.ContainerImage {
	list, err := a.Runtime.ListImages(ctx, nil)
	if err != nil {
		return nil
	}
	var out []corev1.ContainerImage
	for _, i := range list {
		out = append(
			out,
			corev1.ContainerImage{Names: append(append([]string(nil), i.RepoDigests...), i.RepoTags...), SizeBytes: int64(i.Size)},
		)
	}
	return out
}

// isSimulated: such a node has no network to route to.
func isSimulated(n *corev1.Node) bool {
	_, ok := n.Labels[simulated.Label]
	return ok
}

// serve answers on the kubelet's port until ctx ends.
func (a *agent) serve(ctx context.Context, listener net.Listener, m *pods.Manager) {
	err := kubeletapi.Run(ctx, listener, kubeletapi.Config{
		NodeName: a.NodeName, Runtime: a.Runtime, Pods: m, Dirs: podconfig.Dirs{Root: a.DataDir},
		RuntimeName: a.runtimeName(ctx), TLS: a.ServerTLS, Version: a.Version, Logger: a.Logger,
	})
	if err != nil && ctx.Err() == nil {
		a.Logger.Error("the kubelet endpoints ended", "err", err)
	}
}

// portOf is the port clients dial, 0 for a listener without one.
func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
