package agent

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/agent/api/podsapi"
	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/agent/pods"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/images"
	"github.com/setpoint-io/setpoint/agent/runtime/noswap"
	"github.com/setpoint-io/setpoint/agent/volumes/volumestats"
)

// podRunner runs the pods of this node. Whoever serves something of pods asks it.
type podRunner struct {
	manager *pods.Manager
	// volumeStats is how full the volumes of claims are.
	volumeStats *volumestats.Keeper
	// api tells programs on the node of its pods; nil: none can ask.
	api *podsapi.Server
	// start runs the pods until its context ends.
	start func(context.Context) error
}

// newPodRunner builds everything that a pod needs, and starts no pod yet.
func (a *agent) newPodRunner(
	ctx context.Context, children *sync.WaitGroup, watch *nodeWatch, nodes informers.SharedInformerFactory,
) *podRunner {
	everywhere := informers.NewSharedInformerFactory(a.Client, 0)
	bound := informers.NewSharedInformerFactoryWithOptions(a.Client, 0, informers.WithTweakListOptions(a.boundHere))
	closePorts, awaitNames := a.followNetwork(ctx, children, everywhere, bound, nodes)
	lookup := &objects{
		client:   a.Client,
		nodeName: a.NodeName,
		services: everywhere.Core().V1().Services().Lister(),
		synced:   everywhere.Core().V1().Services().Informer().HasSynced,
	}
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	sender := status.NewManager(status.Config{Client: a.Client, Logger: a.Logger})
	children.Go(func() { sender.Run(ctx) })
	mounter := a.volumes(watch, lookup, recorder)
	cfg := a.podsConfig(ctx, watch, lookup, recorder)
	cfg.Status, cfg.Volumes = sender, mounter
	r := &podRunner{}
	if a.Plugins {
		r.api = podsapi.New()
		cfg.Listener = r.api
	}
	r.manager = pods.New(cfg)
	a.manager.Store(r.manager)
	r.volumeStats = volumestats.New(volumestats.Config{
		Pods: r.manager.Pods, Volume: lookup.Volume, Measure: mounter.Measure, Every: a.Settings.VolumeStatsEvery, Logger: a.Logger,
	})
	children.Go(func() { r.volumeStats.Run(ctx) })
	r.start = func(ctx context.Context) error {
		closePorts()
		informer := bound.Core().V1().Pods().Informer()
		everywhere.StartWithContext(ctx)
		defer everywhere.Shutdown()
		bound.StartWithContext(ctx)
		defer bound.Shutdown()
		awaitNames(ctx)
		a.probeFirewall(ctx, children)
		return r.manager.Run(ctx, informer)
	}
	return r
}

// followNetwork has the network follow the cluster: Services, policies, ports, Ingresses and names. Before the first pod starts,
// closePorts keeps pods from the machine's ports and awaitNames waits until names are answered.
func (a *agent) followNetwork(
	ctx context.Context, children *sync.WaitGroup, everywhere, bound, nodes informers.SharedInformerFactory,
) (closePorts func(), awaitNames func(context.Context)) {
	a.translateServices(ctx, children, everywhere, nodes, a.keepBook(everywhere, nodes))
	a.enforcePolicies(ctx, children)
	closePorts, opened := a.closePorts(ctx, children, everywhere, bound)
	a.followPorts(bound)
	a.serveIngresses(ctx, children, everywhere, nodes, a.gatewaysOpened(opened))
	return closePorts, a.serveNames(ctx, children, everywhere)
}

// podsConfig is what the workers of pods ask and are told, but for Status and Volumes.
func (a *agent) podsConfig(ctx context.Context, watch *nodeWatch, lookup *objects, recorder events.Recorder) pods.Config {
	cfg := pods.Config{
		NodeName: a.NodeName, Client: a.Client, Runtime: a.Runtime, RuntimeName: a.runtimeName(ctx),
		HostIPs: a.hostIPs, Dirs: a.dirs(), LogLinks: a.logLinks(),
		DNS:     a.resolver,
		Objects: lookup, Events: recorder,
		Images:   a.puller(recorder, lookup),
		Contents: a.contents,
		Pressure: a.pressure.Now, ShuttingDown: a.shutdown.Now, UnsafeSysctls: a.Settings.UnsafeSysctls,
		SeccompDefault: a.Settings.SeccompDefault, QuotaPeriod: a.Settings.QuotaPeriod, Features: node.DeclaredFeatures(),
		Users:           a.users,
		Swap:            noswap.OfThisMachine(),
		RestartPauseMax: a.Settings.RestartPauseMax,
		Allocatable:     watch.allocatable, RuntimeHandler: lookup.RuntimeHandler, UserAgent: "kube-probe/1.37", Logger: a.Logger,
	}
	if a.devices != nil {
		cfg.Devices, cfg.Claims = a.devices, a.claims
	}
	if a.pinning != nil {
		cfg.Pinning = a.pinning
	}
	return cfg
}

func (a *agent) puller(recorder events.Recorder, lookup *objects) *images.Puller {
	var progress func(string) (int64, int64, bool)
	if teller, ok := a.Runtime.(cri.PullTeller); ok {
		progress = teller.PullProgress
	}
	return images.New(images.Config{
		Progress: progress, Service: a.Runtime, Events: recorder, Dir: a.dirs().ImageAccess(), Secret: lookup.Secret,
		PullsMax: a.Settings.PullsMax, Verification: a.Settings.Verification, Plugins: a.Settings.Credentials, Accounts: lookup,
	})
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

// warnOn records a warning on a pod.
func warnOn(recorder events.Recorder) func(pod *corev1.Pod, reason, message string) {
	return func(pod *corev1.Pod, reason, message string) {
		recorder.Event(events.Pod(pod), corev1.EventTypeWarning, reason, message)
	}
}
