package setpoint

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
)

// monitors are the informers of every kind, by which the garbage collector knows who
// owns whom. Kinds that the server's caches lack are followed for one term, and by
// their metadata only: a server that does not lead, and most of every object, cost
// nothing. What they hold is never older than the term.
type monitors struct {
	ctx     context.Context // of the term
	catalog *crd.Catalog
	logger  *slog.Logger
	builtIn map[schema.GroupVersionResource]cache.SharedIndexInformer
	wg      sync.WaitGroup // of the informers

	aggregation *aggregation.Aggregator
	client      metadata.Interface // asks other servers, through this one

	mu     sync.Mutex
	custom map[schema.GroupVersionResource]customMonitor
	// remote follow what other servers keep.
	remote map[schema.GroupVersionResource]customMonitor
}

// customMonitor is the informer of a kind that may go. A definition without
// instances has none, so that it costs nothing.
type customMonitor struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// newMonitors starts the informers of the built-in kinds. They end with ctx.
func (s *Server) newMonitors(ctx context.Context, client metadata.Interface) *monitors {
	m := &monitors{
		ctx: ctx, catalog: s.custom, logger: s.config.Logger,
		aggregation: s.aggregation, client: client,
		builtIn: maps.Clone(s.caches.kinds), custom: map[schema.GroupVersionResource]customMonitor{}, remote: map[schema.GroupVersionResource]customMonitor{},
	}
	for gvr, table := range tables(s.storage) {
		if _, whole := m.builtIn[gvr]; !whole {
			m.builtIn[gvr] = m.start(ctx, table)
		}
	}
	return m
}

// start follows the metadata of a table until ctx ends.
func (m *monitors) start(ctx context.Context, table *storage.Table) cache.SharedIndexInformer {
	lister := &tableLister{table: table.Metadata()}
	informer := cache.NewSharedIndexInformer(lister, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	m.wg.Go(func() { informer.RunWithContext(ctx) })
	return informer
}

// all returns the monitors of this moment.
func (m *monitors) all() map[schema.GroupVersionResource]cache.SharedIndexInformer {
	all := maps.Clone(m.builtIn)
	m.mu.Lock()
	defer m.mu.Unlock()
	instances, err := m.catalog.Instances(m.ctx)
	if err != nil {
		m.logger.Debug("custom resources not looked at", "error", err)
	} else {
		m.follow(instances)
	}
	for gvr, monitor := range m.custom {
		all[gvr] = monitor.informer
	}
	m.addRemote(all)
	return all
}

// follow starts informers of what has come and stops those of what went.
func (m *monitors) follow(instances map[schema.GroupVersionResource]*storage.Table) {
	for gvr, monitor := range m.custom {
		if instances[gvr] == nil {
			monitor.stop()
			delete(m.custom, gvr)
		}
	}
	for gvr, table := range instances {
		if _, known := m.custom[gvr]; !known {
			ctx, stop := context.WithCancel(m.ctx)
			m.custom[gvr] = customMonitor{m.start(ctx, table), stop}
		}
	}
}
