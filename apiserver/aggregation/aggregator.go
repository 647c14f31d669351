package aggregation

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Resource is where APIServices are stored.
var Resource = apiregistrationv1.SchemeGroupVersion.WithResource("apiservices")

// Config is what an Aggregator is made of. All fields are required.
type Config struct {
	Store *storage.Store
	// Services finds the address of a server by its Service.
	Services webhook.ServiceResolver
	// Dial connects to the address that Services found.
	Dial utilnet.DialFunc
	// Certificate proves to other servers that this one may name users.
	Certificate func() (*tls.Certificate, error)
	// Authority is who has signed it: with another one, connections are made anew.
	Authority func() string
	Codecs    runtime.NegotiatedSerializer
	Logger    *slog.Logger
}

// Aggregator knows which group versions other servers answer for. It is safe for
// concurrent use.
type Aggregator struct {
	config   Config
	follower *storage.Follower
	ctx      context.Context // of Run, which alone starts what lives longer than a call
	// routes is replaced, never changed: requests read it without a lock.
	routes atomic.Pointer[routes]
	// remotes is what Remotes returns.
	remotes atomic.Pointer[[]discovery.Remote]

	mu       sync.Mutex
	backends map[target]*backend
	wg       sync.WaitGroup
}

type routes map[schema.GroupVersion]*route

// route leads from a group version to the server that answers for it.
type route struct {
	service *apiregistrationv1.APIService
	backend *backend
}

// New returns an aggregator that passes nothing on until Run has read the table.
func New(config Config) *Aggregator {
	a := &Aggregator{config: config, backends: map[target]*backend{}}
	a.follower = config.Store.Table(Resource).Follow(a.change, config.Logger)
	a.routes.Store(&routes{})
	a.remotes.Store(&[]discovery.Remote{})
	return a
}

// Run follows the APIServices until ctx ends. It runs once.
func (a *Aggregator) Run(ctx context.Context) {
	a.ctx = ctx
	a.follower.Run(ctx)
	a.wg.Wait()
}

// CatchUp waits until all that was written in the cluster before the call is known.
func (a *Aggregator) CatchUp(ctx context.Context) error {
	revision, err := a.config.Store.LinearizableRevision(ctx)
	if err != nil {
		return err
	}
	return a.follower.Reach(ctx, revision)
}

// Handler returns what passes a request on, or nil if this server answers itself.
func (a *Aggregator) Handler(r *http.Request) http.Handler {
	table := *a.routes.Load()
	if len(table) == 0 {
		return nil
	}
	gv, ok := groupVersionOf(r.URL.Path)
	if !ok {
		return nil
	}
	found := table[gv]
	if found == nil {
		return nil
	}
	return proxy{found, a.config.Codecs}
}

// groupVersionOf reads /apis/<group>/<version>, with or without more.
func groupVersionOf(path string) (gv schema.GroupVersion, ok bool) {
	below, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		return gv, false
	}
	group, below, ok := strings.Cut(below, "/")
	version, _, _ := strings.Cut(below, "/")
	return schema.GroupVersion{Group: group, Version: version}, ok && group != "" && version != ""
}

// Remotes is what the other servers offer. It is the same slice until that changes.
func (a *Aggregator) Remotes() []discovery.Remote { return *a.remotes.Load() }

// passedOn reports whether requests for an APIService go to another server. Who could
// take over the core group or APIServices themselves could not be dismissed any more.
func passedOn(service *apiregistrationv1.APIService) bool {
	return service != nil && service.Spec.Service != nil && service.Spec.Group != "" && service.Spec.Group != apiregistrationv1.GroupName
}

func versionOf(service *apiregistrationv1.APIService) schema.GroupVersion {
	return schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}
}

// change takes one change of the table, in its order.
func (a *Aggregator) change(before, after resource.Object) {
	was, _ := before.(*apiregistrationv1.APIService)
	is, _ := after.(*apiregistrationv1.APIService)
	if !passedOn(was) && !passedOn(is) {
		return
	}
	a.mu.Lock()
	next := maps.Clone(*a.routes.Load())
	last := &offer{stale: true}
	if was != nil {
		if r := next[versionOf(was)]; r != nil {
			last = r.backend.offer.Load().asStale()
		}
		delete(next, versionOf(was))
	}
	if passedOn(is) {
		b := a.backend(targetOf(is), last)
		next[versionOf(is)] = &route{is, b}
		if was == nil || !apiequality.Semantic.DeepEqual(was.Spec, is.Spec) || available(was) != available(is) {
			defer b.ask()
		}
	}
	a.routes.Store(&next)
	a.endUnused(next)
	a.mu.Unlock()
	a.publish()
}

// backend returns the server at a target, followed from now on. Until it answers it
// offers what the last one did: a new bundle must not make a group vanish for a moment.
// The lock is held.
func (a *Aggregator) backend(to target, last *offer) *backend {
	if b := a.backends[to]; b != nil {
		return b
	}
	b := newBackend(&a.config, to, last)
	a.backends[to] = b
	var ctx context.Context
	ctx, b.stop = context.WithCancel(a.ctx)
	a.wg.Go(func() {
		defer func() { b.caller().CloseIdleConnections() }()
		b.run(ctx, func() []schema.GroupVersion { return a.versionsOf(b) }, a.publish)
	})
	return b
}

// endUnused lets go of servers that no APIService names any more. The lock is held.
func (a *Aggregator) endUnused(used routes) {
	for to, b := range a.backends {
		if !slices.ContainsFunc(slices.Collect(maps.Values(used)), func(r *route) bool { return r.backend == b }) {
			b.stop()
			delete(a.backends, to)
		}
	}
}

// versionsOf are the group versions that a server answers for.
func (a *Aggregator) versionsOf(b *backend) []schema.GroupVersion {
	var all []schema.GroupVersion
	for gv, r := range *a.routes.Load() {
		if r.backend == b {
			all = append(all, gv)
		}
	}
	return all
}

// publish makes Remotes anew from what is known of the servers now.
func (a *Aggregator) publish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []discovery.Remote{}
	for _, r := range *a.routes.Load() {
		all = append(all, r.offered())
	}
	slices.SortFunc(all, func(x, y discovery.Remote) int { return strings.Compare(x.Name(), y.Name()) })
	a.remotes.Store(&all)
}

// Probe asks the server of an APIService for the group version, as the aggregator would.
func (a *Aggregator) Probe(ctx context.Context, service *apiregistrationv1.APIService) error {
	to := targetOf(service)
	a.mu.Lock()
	b := a.backends[to]
	a.mu.Unlock()
	if b == nil {
		b = newBackend(&a.config, to, &offer{stale: true})
		defer b.caller().CloseIdleConnections()
	}
	return b.probe(ctx, "/apis/"+versionOf(service).String())
}
