package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
)

// Controller is what New of a controller's folder returns, and one line of the list in
// package controllers.
type Controller struct {
	// Name is what its events and the log carry; upstream's, where there is one. Required.
	Name string
	// Account is upstream's service account of it in kube-system, as which it writes; empty: it is called like the controller.
	Account string
	// Reads are all kinds that it reads from caches. A server keeps exactly the caches that
	// its controllers declare; reading anything else is an UndeclaredError.
	Reads []Read
	// Run runs the controller until ctx ends, that is for one term; it returns after its
	// last goroutine has. Required.
	Run func(ctx context.Context, env *Env) error
	// OfAPI says that upstream's API server does this itself, so that the controller runs
	// also where only the API is wanted.
	OfAPI bool
}

// Env is what every controller is built from. server/term makes one for each term.
type Env struct {
	// Client writes, and reads what no cache holds. As with all clients here, every write
	// carries the fence of the term, and the client itself limits no rates. Evictions are
	// its PolicyV1().Evictions. Required.
	Client kubernetes.Interface
	// Extensions, Aggregator, Metadata and Discovery are further clients of the same user.
	Extensions apiextensions.Interface
	Aggregator aggregator.Interface
	Metadata   metadata.Interface
	Discovery  discovery.DiscoveryInterface
	// REST makes clients that are not listed here, such as those for metrics and scale
	// subresources. They are of the same user and carry the same fence.
	REST *rest.Config
	// Caches hold what controllers declare. A controller calls From of a Kind instead. Required.
	Caches Caches
	// Events records events in the controller's name.
	Events record.EventRecorder
	// Clock is what the loop's queue waits by and Now tells; nil is the real one.
	Clock clock.WithTicker
	// Numbers count what the loops do; nil counts nothing.
	Numbers *numbers.Ledger
	// Pace holds loops for who wants to look; nil holds none.
	Pace *pace.Pace
	// Logger takes what the controller has to say; nil means silence.
	Logger *slog.Logger

	name    string // of the controller that it was made for
	account string
	reads   []bound
}

// Caches hands out informers. They are shared by all controllers and all terms, and run
// whether this server leads or not.
type Caches interface {
	// Informer holds the objects of a resource or, unless only is empty, those of that name;
	// nil if there is no such informer.
	Informer(resource schema.GroupVersionResource, only string) cache.SharedIndexInformer
}

// ErrEnv is returned by Start if the Env lacks what every controller needs.
var ErrEnv = errors.New("reconcile: the Env lacks a Client or Caches")

// bound is a declared read with its informer.
type bound struct {
	Declaration
	informer cache.SharedIndexInformer
}

// Start runs the controller until ctx ends, over the caches that it declares.
func (c Controller) Start(ctx context.Context, env Env) error {
	own, err := env.of(c)
	if err != nil {
		return err
	}
	return c.Run(withPass(ctx, Pass{Controller: c.Name, Account: c.account()}), own)
}

func (c Controller) account() string { return cmp.Or(c.Account, c.Name) }

// of is the Env of one controller: with defaults, and its caches only.
func (e Env) of(c Controller) (*Env, error) {
	if e.Client == nil || e.Caches == nil {
		return nil, ErrEnv
	}
	if e.Events == nil {
		e.Events = &record.FakeRecorder{}
	}
	if e.Clock == nil {
		e.Clock = clock.RealClock{}
	}
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	e.name, e.account, e.reads = c.Name, c.account(), nil
	for _, read := range c.Reads {
		d := read.Declaration()
		informer := e.Caches.Informer(d.Resource, d.Only)
		if informer == nil {
			return nil, fmt.Errorf("%s: there is no cache of %s", c.Name, d)
		}
		if err := d.Prepare(informer); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		e.reads = append(e.reads, bound{d, informer})
	}
	return &e, nil
}

// Now is the time by the controller's clock.
func (e *Env) Now() time.Time { return e.Clock.Now() }

// UndeclaredError says that a controller reads what its Reads do not name.
type UndeclaredError struct {
	// Controller is the reader's name.
	Controller string
	// What is the kind, or the kind and the index.
	What string
}

func (e *UndeclaredError) Error() string {
	return fmt.Sprintf("%s reads %s, which its Reads do not declare", e.Controller, e.What)
}

// Idle waits until ctx ends: it is the Run of a controller that was given nothing to do.
func Idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
