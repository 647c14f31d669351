package setpoint

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// customMonitors are informers of custom resources, by which the garbage collector
// knows them. A definition without instances has none, so that it costs nothing.
type customMonitors struct {
	ctx     context.Context // of the server: informers outlive terms
	catalog *crd.Catalog
	logger  *slog.Logger

	mu      sync.Mutex
	running map[schema.GroupVersionResource]customMonitor
}

type customMonitor struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

func newCustomMonitors(ctx context.Context, catalog *crd.Catalog, logger *slog.Logger) *customMonitors {
	return &customMonitors{ctx: ctx, catalog: catalog, logger: logger, running: map[schema.GroupVersionResource]customMonitor{}}
}

// and returns the built-in monitors with those of the custom resources of this moment.
func (m *customMonitors) and(builtIn map[schema.GroupVersionResource]cache.SharedIndexInformer) map[schema.GroupVersionResource]cache.SharedIndexInformer {
	all := maps.Clone(builtIn)
	m.mu.Lock()
	defer m.mu.Unlock()
	instances, err := m.catalog.Instances(m.ctx)
	if err != nil {
		m.logger.Debug("custom resources not looked at", "error", err)
	} else {
		m.follow(instances)
	}
	for gvr, monitor := range m.running {
		all[gvr] = monitor.informer
	}
	return all
}

// follow starts informers of what has come and stops those of what went.
func (m *customMonitors) follow(instances map[schema.GroupVersionResource]*storage.Table) {
	for gvr, monitor := range m.running {
		if instances[gvr] == nil {
			monitor.stop()
			delete(m.running, gvr)
		}
	}
	for gvr, table := range instances {
		if _, known := m.running[gvr]; known {
			continue
		}
		ctx, stop := context.WithCancel(m.ctx)
		informer := cache.NewSharedIndexInformerWithOptions(&tableLister{table: table}, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{
			Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		})
		m.running[gvr] = customMonitor{informer, stop}
		go informer.RunWithContext(ctx)
	}
}
