package dns

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/net/dns/kept"
)

// keepInterval is how much an agent that is killed may have learned in vain. One that ends keeps what it knows.
const keepInterval = 30 * time.Second

// followNames notes that there is something to keep.
func (s *server) followNames() {
	note := func(any) { s.unkept.Store(true) }
	for _, informer := range []cache.SharedIndexInformer{s.view.services, s.view.slices} {
		// It fails only where an informer has stopped already.
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: note, UpdateFunc: func(_, o any) { note(o) }, DeleteFunc: note,
		})
	}
}

// recall answers from what an earlier agent kept, until a server tells more. A file that cannot be read is told, and then
// names of the cluster are not known.
func (s *server) recall() {
	if s.Kept == "" {
		return
	}
	names, err := kept.Load(s.Kept)
	switch {
	case err == nil:
		s.view.keep(names)
	case !errors.Is(err, fs.ErrNotExist):
		s.Logger.Warn("names of the cluster are not known before a server is reached", "err", err)
	}
}

// keepNames keeps what changed until ctx ends, and then once more.
func (s *server) keepNames(ctx context.Context) {
	if s.Kept == "" {
		return
	}
	tick := time.NewTicker(keepInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		s.keepNow()
	}
}

// keepNow does nothing before all is known: the file of the earlier agent says more then. That a file is old harms
// little, so an error is only told.
func (s *server) keepNow() {
	if !s.view.synced() || !s.unkept.Swap(false) {
		return
	}
	if err := kept.Save(s.Kept, s.view.objects().names()); err != nil {
		s.unkept.Store(true)
		s.Logger.Warn("names of the cluster are not kept for the next start", "err", err)
	}
}
