package monitors

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// addRemote adds monitors of what other servers keep, over their API. Only those that
// are filled: a server that does not answer must not keep the collector from everything
// else. The lock is held.
func (m *Monitors) addRemote(all map[schema.GroupVersionResource]cache.SharedIndexInformer) {
	wanted := map[schema.GroupVersionResource]bool{}
	for _, gvr := range m.config.Remotes.Collectable() {
		wanted[gvr] = true
		if _, known := m.remote[gvr]; !known {
			m.remote[gvr] = m.startRemote(gvr)
		}
	}
	for gvr, known := range m.remote {
		switch {
		case !wanted[gvr]:
			known.stop()
			delete(m.remote, gvr)
		case known.informer.HasSynced():
			all[gvr] = known.informer
		}
	}
}

func (m *Monitors) startRemote(gvr schema.GroupVersionResource) monitor {
	ctx, stop := context.WithCancel(m.ctx)
	informer := metadatainformer.NewFilteredMetadataInformer(m.config.Client, gvr, "", 0, cache.Indexers{}, nil).Informer()
	m.wg.Go(func() { informer.RunWithContext(ctx) })
	return monitor{informer, stop}
}
