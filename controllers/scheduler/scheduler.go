package scheduler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
	"github.com/setpoint-io/setpoint/controllers/scheduler/devices"
	"github.com/setpoint-io/setpoint/controllers/scheduler/owners"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
	"github.com/setpoint-io/setpoint/controllers/scheduler/points"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// flushInterval is how often pods parked for too long are looked for.
const flushInterval = time.Minute

// Config is what one term of scheduling needs.
type Config struct {
	// Client writes conditions and events; it carries the fence of the term.
	Client kubernetes.Interface
	// Binder binds; nil: Client does.
	Binder Binder
	// Informers are shared and stay warm between terms; their owner starts them, with what Reads names.
	Informers informers.SharedInformerFactory
	// Serves tells whether the API serves a kind; nil means all. Services, controllers and disruption budgets are left
	// out of account where they are not served. Nodes, namespaces and pods always must be.
	Serves func(schema.GroupVersionResource) bool
	// Profiles say which pods are scheduled, and how; zero: upstream's default profile.
	Profiles profile.Config
	// Pace holds the scheduler for who wants to look; nil never does.
	Pace *pace.Pace
	// Numbers count what the scheduler does; nil counts nothing.
	Numbers *numbers.Ledger
	// Clock is what backoffs, conditions and patience go by; nil is the real one.
	Clock clock.WithTicker
	// Logger takes the scheduler's log; slog's default if nil.
	Logger *slog.Logger
}

// Validate says what is missing.
func (c Config) Validate() error {
	if c.Client == nil || c.Informers == nil {
		return errors.New("scheduler: Client and Informers are required")
	}
	return nil
}

func (c Config) serves(gvr schema.GroupVersionResource) bool {
	return c.Serves == nil || c.Serves(gvr)
}

func (c Config) clock() clock.WithTicker { return cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{}) }

// errPlaced means that the pod got a node while it waited.
var errPlaced = errors.New("scheduler: the pod has a node already")

// scheduler is the state of one term.
type scheduler struct {
	client  kubernetes.Interface
	loop    reconcile.OwnLoop // in reports: the first profile's name
	log     *slog.Logger
	pods    corelisters.PodLister
	owners  *owners.Owners
	claims  *claims
	queue   *queue
	binder  *binder
	evictor *evictor
	report  *reporter
	counts  *numbers.Scheduling // nil if nobody counts
	series  *numbers.Series

	mu      sync.Mutex // guards cache and engines; taken before queue.mu, never held during I/O
	cache   *cache
	engines map[string]*engine // by schedulerName; the map itself does not change
}

// Run schedules until ctx ends and returns when all its goroutines have. It returns nil when ctx ended, an error only
// for an unusable Config or for informers that cannot be watched.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s := newScheduler(cfg)
	defer s.queue.numbers.End()
	s.counts.Begin(s.queue.pending)
	defer s.counts.End()
	defer s.report.queue.ShutDown()
	stopWatching, err := s.watch(ctx, cfg)
	defer stopWatching()
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.queue.numbers.Started()
	s.log.Info("scheduling begins", "profiles", slices.Sorted(maps.Keys(s.engines)))
	stopEvents := s.report.recordEvents(ctx, cfg.Numbers, maps.Keys(s.engines))
	defer stopEvents()
	var children sync.WaitGroup
	children.Go(func() { s.report.run(ctx) })
	children.Go(func() { s.flush(ctx) })
	for {
		t, ok := s.queue.pop(ctx, cfg.Pace.Gate(queueName))
		if !ok {
			break
		}
		s.schedule(ctx, t)
	}
	s.binder.wait()
	s.evictor.wait()
	children.Wait()
	s.report.end()
	return nil
}

func newScheduler(cfg Config) *scheduler {
	config := cfg.Profiles.Or(profile.Default())
	cfg.Clock = cfg.clock()
	s := &scheduler{client: cfg.Client, log: cfg.Logger, cache: newCache(), engines: map[string]*engine{}}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.counts, s.series = cfg.Numbers.OfScheduling(), cfg.Numbers.Series()
	name := config.Profiles[0].Name
	s.queue = newQueue(cfg.Numbers.Begin(name, queueName), s.series, cfg.Clock, config.BackoffMin, config.BackoffMax)
	s.loop = reconcile.OwnLoop{Controller: name, Numbers: s.queue.numbers, Now: cfg.Clock.Now}
	s.pods = cfg.Informers.Core().V1().Pods().Lister()
	s.owners = owners.New(cfg.Informers, cfg.serves)
	s.claims = newClaims(cfg)
	for i := range config.Profiles {
		p := &config.Profiles[i]
		s.engines[p.Name] = newEngine(s.cache, p)
		s.engines[p.Name].laps.Durations = s.durations(p.Name)
	}
	s.report = newReporter(cfg, s)
	s.binder = newBinder(s, cfg.Binder)
	s.evictor = newEvictor(s, cfg)
	return s
}

// schedule is one pass: it finds a node for one pod and starts binding it, or makes room for it, or explains why there is none. What is
// written for that afterwards is the pass's too. Events are not among its writes, as with controllers.
func (s *scheduler) schedule(ctx context.Context, t task) {
	t.pass = s.loop.Begin(keyOf(t.pod.Pod))
	t.pass.End(s.attempt(t.pass.In(ctx), t))
}

// attempt returns why the pod got no node.
func (s *scheduler) attempt(ctx context.Context, t task) error {
	d, err := s.decide(t, s.owners.Selector(t.pod.Pod))
	var fit *FitError
	switch {
	case err == nil:
		s.queue.wake(plugin.PodBound)
		s.binder.start(ctx, t, d)
	case errors.As(err, &fit):
		s.queue.park(t.entry, fit.Wakes)
		s.series.Attempted(t.profile(), numbers.Unschedulable, time.Since(t.begun))
		s.report.unschedulable(t.pod.Pod, corev1.PodReasonUnschedulable, fit.Error(), t.pass)
		if len(d.victims) > 0 {
			s.evictor.evict(ctx, t, d)
		}
		if d.blocks != nil {
			s.binder.deallocate(ctx, t, d.blocks)
		}
		return fit
	default:
		s.queue.done(t.entry)
	}
	return nil
}

// decision is where a pod goes, or who has to leave for it.
type decision struct {
	node    string
	volumes plugin.VolumeChoice  // for the pod's claims, promised
	devices []devices.Allocation // for the pod's claims, promised
	victims []*corev1.Pod
	lost    []*plugin.Pod             // less important pods to which the room was promised
	blocks  *resourcev1.ResourceClaim // its devices are in the way, and nobody else uses them
}

// decide places the pod and counts it on its node at once, so that the next pod sees it there. With a FitError it may
// still name a node and victims: the pods to evict for it.
func (s *scheduler) decide(t task, spread labels.Selector) (decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache.placed(t.pod.UID) {
		return decision{}, errPlaced
	}
	found, needs, err := s.place(t, spread)
	if err == nil {
		volumes, _ := needs.ChooseVolumes(found.Node) // the node was found because there is a choice
		devices, err := devices.Chosen(needs.Allocate, needs.Devices, needs.Extended, found.Node)
		if err != nil {
			return decision{}, &FitError{Nodes: s.cache.known, Refusal: err.Error(), Wakes: plugin.DevicesChanged | plugin.ClassChanged}
		}
		s.claims.allocation.Promise(devices)
		s.claims.promise(volumes, found.Name)
		s.cache.denominate(t.pod.UID)
		s.cache.assume(t.pod, found)
		s.engines[t.profile()].laps.Ran(points.Reserve, points.Success)
		return decision{node: found.Name, volumes: volumes, devices: devices}, nil
	}
	var fit *FitError
	if !errors.As(err, &fit) || fit.Nodes == 0 {
		return decision{}, err
	}
	d := s.makeRoom(t.pod, fit)
	if needs != nil {
		d.blocks = s.blocking(t.pod, needs, fit)
	}
	return d, err
}

// blocking is a claim whose devices cannot be reached from a node on which the pod would fit otherwise, or do not become ready,
// and which no other pod uses, or the claim that an earlier attempt has left; nil if there is none.
func (s *scheduler) blocking(pod *plugin.Pod, needs *plugin.Needs, fit *FitError) *resourcev1.ResourceClaim {
	if needs.Stale != nil {
		return needs.Stale
	}
	if fit.Reasons[plugins.DevicesElsewhere] == 0 {
		return nil
	}
	for _, node := range s.cache.nodes {
		if node == nil || node.Node == nil {
			continue
		}
		if r, _ := fit.class.verdict(node); r == nil || !slices.Contains(r.Reasons, plugins.DevicesElsewhere) {
			continue
		}
		for _, claim := range needs.Devices {
			there := plugins.OffersDevices(node, claim) && !slices.Contains(needs.Stuck, claim)
			if !there && devices.UnusedByOthers(pod.Pod, claim) {
				return claim
			}
		}
	}
	return nil
}

// place asks the engine for a node that the pod's claims allow too.
func (s *scheduler) place(t task, spread labels.Selector) (*plugin.Node, *plugin.Needs, error) {
	e := s.engines[t.profile()]
	e.laps.Begin()
	needs, err := s.claims.needs(t.pod.Pod)
	if err != nil && s.cache.known > 0 {
		e.laps.Ran(points.PreFilter, points.Unresolvable)
		const wakes = plugin.ClaimChanged | plugin.DevicesChanged | plugin.ClassChanged
		return nil, nil, &FitError{Nodes: s.cache.known, Refusal: err.Error(), Wakes: wakes}
	}
	pod := *t.pod
	pod.Needs = needs
	found, err := e.place(&pod, t.key, spread)
	return found, &needs, err
}

// makeRoom decides whom to evict for a pod that fits nowhere, and promises it the room.
func (s *scheduler) makeRoom(pod *plugin.Pod, fit *FitError) decision {
	e := s.engines[pod.Spec.SchedulerName]
	if e.profile.Preemption == nil {
		return decision{}
	}
	s.counts.Preempting()
	e.laps.Begin()
	chosen := e.preempt(pod, fit, s.evictor.allowances())
	if chosen == nil {
		e.laps.Ran(points.PostFilter, points.Unschedulable)
		return decision{}
	}
	e.laps.Ran(points.PostFilter, points.Success)
	s.series.Victims.Observe(float64(len(chosen.victims)))
	d := decision{node: chosen.node.Name, lost: s.cache.nominate(pod, chosen.node.Name)}
	for _, victim := range chosen.victims {
		s.cache.evicting[victim.UID] = true
		d.victims = append(d.victims, victim.Pod)
	}
	return d
}

// spare takes back that a pod is being evicted: it could not be.
func (s *scheduler) spare(uid types.UID) {
	s.mu.Lock()
	delete(s.cache.evicting, uid)
	s.mu.Unlock()
	s.queue.wake(plugin.PodGone)
}

// forget takes back what assume counted.
func (s *scheduler) forget(t task) {
	s.mu.Lock()
	events := s.cache.forget(t.pod.UID)
	s.mu.Unlock()
	s.queue.wake(events)
}

// release ends the promises of volumes; those that are left over may help others.
func (s *scheduler) release(choice plugin.VolumeChoice) {
	s.mu.Lock()
	s.claims.release(choice)
	s.mu.Unlock()
	s.queue.wake(plugin.ClaimChanged)
}

// settle ends the promises of devices: the claims as they are given are stored, the others stay without.
func (s *scheduler) settle(all []devices.Allocation, stored []*resourcev1.ResourceClaim) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	s.claims.allocation.Written(all, stored)
	s.claims.allocation.Forget(all)
	s.mu.Unlock()
	if len(stored) < len(all) {
		s.queue.wake(plugin.DevicesChanged)
	}
}

// deleted ends the promises of claims that exist no more.
func (s *scheduler) deleted(claims []*resourcev1.ResourceClaim) {
	if len(claims) == 0 {
		return
	}
	s.mu.Lock()
	s.claims.allocation.Gone(claims)
	s.mu.Unlock()
	s.queue.wake(plugin.DevicesChanged)
}

// flush wakes pods parked for too long.
func (s *scheduler) flush(ctx context.Context) {
	ticker := s.queue.clock.NewTicker(flushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C():
			s.queue.flush(now)
		}
	}
}
