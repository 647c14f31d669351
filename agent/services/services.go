package services

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/network"
	"github.com/setpoint-io/setpoint/agent/wait"
)

const (
	// settleTime collects changes that come together.
	settleTime = 100 * time.Millisecond
	// retryInterval is the pause after the network refused.
	retryInterval = 5 * time.Second
)

// Config of Watch; all fields are required.
type Config struct {
	// Informers must not have started.
	Informers informers.SharedInformerFactory
	// Set is handed all Services whenever one of them leads elsewhere.
	Set    func([]network.Service) error
	Logger *slog.Logger
}

// Watch registers with the informers, before they start; run then works until its context ends.
func Watch(c Config) (run func(context.Context)) {
	w := &watch{Config: c, changed: make(chan struct{}, 1)}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.look() }, UpdateFunc: func(any, any) { w.look() }, DeleteFunc: func(any) { w.look() },
	}
	for _, informer := range w.informers() {
		// It fails only where an informer has stopped already.
		_, _ = informer.AddEventHandler(handler)
	}
	return w.run
}

// watch is one running Watch. changed holds one: more would say the same.
type watch struct {
	Config
	changed chan struct{}
	told    []network.Service
	ever    bool
}

func (w *watch) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{
		w.Informers.Core().V1().Services().Informer(),
		w.Informers.Discovery().V1().EndpointSlices().Informer(),
	}
}

func (w *watch) look() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *watch) run(ctx context.Context) {
	for _, informer := range w.informers() {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return
		}
	}
	w.look() // a cluster without Services is known too
	for delay := settleTime; ; {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if !wait.For(ctx, delay) {
			return
		}
		delay = settleTime
		if err := w.tell(); err != nil {
			w.Logger.Warn("Services cannot be reached at their addresses", "err", err)
			delay = retryInterval
			w.look()
		}
	}
}

// tell hands on what is different from what was told last.
func (w *watch) tell() error {
	services, err := w.Informers.Core().V1().Services().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	endpointSlices, err := w.Informers.Discovery().V1().EndpointSlices().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	planned := plan(services, endpointSlices)
	if w.ever && slices.EqualFunc(planned, w.told, network.Service.Equal) {
		return nil
	}
	if err := w.Set(planned); err != nil {
		return err
	}
	w.told, w.ever = planned, true
	return nil
}
