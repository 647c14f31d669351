package monitors

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/server/caches"
)

// Config is what the monitors of one term need.
type Config struct {
	Storage *storage.Store
	// Caches are kept whether the server leads or not; what they hold is not followed twice.
	Caches *caches.Caches
	// Custom knows the kinds of definitions, Remotes those of other API servers, which Client
	// asks through this one.
	Custom  *crd.Catalog
	Remotes *aggregation.Aggregator
	Client  metadata.Interface
	Logger  *slog.Logger
}

// Monitors are the informers of every kind, from which the garbage collector reads owner references. Kinds that
// the server's caches lack are followed for one term, and by their metadata only: a server that does not lead,
// and most of every object, cost nothing. What they hold is never older than the term.
type Monitors struct {
	ctx    context.Context // of the term
	config Config
	// builtIn is complete when New returns.
	builtIn map[schema.GroupVersionResource]cache.SharedIndexInformer
	wg      sync.WaitGroup // of the informers

	mu     sync.Mutex
	custom map[schema.GroupVersionResource]monitor
	// remote follow what other servers keep.
	remote map[schema.GroupVersionResource]monitor
}

// monitor is the informer of a kind that may go. A definition without
// instances has none, so that it costs nothing.
type monitor struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// New starts the informers of the built-in kinds. All end with ctx; Wait waits for that.
func New(ctx context.Context, c Config) *Monitors {
	m := &Monitors{
		ctx: ctx, config: c, builtIn: maps.Clone(c.Caches.Kinds),
		custom: map[schema.GroupVersionResource]monitor{}, remote: map[schema.GroupVersionResource]monitor{},
	}
	for gvr, table := range caches.Tables(c.Storage) {
		if _, whole := m.builtIn[gvr]; !whole {
			m.builtIn[gvr] = m.start(ctx, table)
		}
	}
	return m
}

// Wait returns when all informers have ended.
func (m *Monitors) Wait() { m.wg.Wait() }

// start follows the metadata of a table until ctx ends.
func (m *Monitors) start(ctx context.Context, table *storage.Table) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(caches.NewLister(table.Metadata()), &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	m.wg.Go(func() { informer.RunWithContext(ctx) })
	return informer
}

// All returns the monitors of this moment.
func (m *Monitors) All() map[schema.GroupVersionResource]cache.SharedIndexInformer {
	all := maps.Clone(m.builtIn)
	m.mu.Lock()
	defer m.mu.Unlock()
	instances, err := m.config.Custom.Instances(m.ctx)
	if err != nil {
		m.config.Logger.Debug("custom resources not looked at", "err", err)
	} else {
		m.follow(instances)
	}
	for gvr, known := range m.custom {
		all[gvr] = known.informer
	}
	m.addRemote(all)
	return all
}

// follow starts informers of what has come and stops those of what went.
func (m *Monitors) follow(instances map[schema.GroupVersionResource]*storage.Table) {
	for gvr, known := range m.custom {
		if instances[gvr] == nil {
			known.stop()
			delete(m.custom, gvr)
		}
	}
	for gvr, table := range instances {
		if _, known := m.custom[gvr]; !known {
			ctx, stop := context.WithCancel(m.ctx)
			m.custom[gvr] = monitor{m.start(ctx, table), stop}
		}
	}
}
