package why

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
	"github.com/setpoint-io/setpoint/server/caches"
	"github.com/setpoint-io/setpoint/server/named"
)

const (
	// newestTimeout is how long it is waited for the newest state; after it the answer is of what this server has.
	newestTimeout = time.Second
	// loopsTimeout bounds the question to the leader, whose loops' errors are a help and not needed.
	loopsTimeout = time.Second
)

// Config is what answers are made from.
type Config struct {
	Storage *storage.Store
	Caches  *caches.Caches
	// Scheduling are the scheduler's profiles; zero: upstream's default profile.
	Scheduling profile.Config
	// CustomKinds and Custom are the kinds that are not built in, and their tables.
	CustomKinds func(ctx context.Context) ([]*resource.Any, error)
	Custom      func(ctx context.Context) (map[schema.GroupVersionResource]*storage.Table, error)
	// Loops are the reports of the loops where they act.
	Loops      func(ctx context.Context) ([]numbers.Report, error)
	Clock      clock.WithTicker
	Authorizer authorizer.Authorizer
}

// Why answers questions. It is safe for concurrent use.
type Why struct {
	config Config
	judge  *scheduler.Judge
}

// New returns a Why.
func New(c Config) *Why {
	return &Why{c, scheduler.NewJudge(scheduler.Config{Informers: c.Caches, Serves: c.Storage.Serves, Profiles: c.Scheduling, Clock: c.Clock})}
}

// Question names an object as kubectl does.
type Question named.Question

// Answer explains the object, as far as the caller may know. Errors are those of the API: NotFound, Forbidden.
func (y *Why) Answer(ctx context.Context, caller user.Info, q Question) (explain.Answer, error) {
	w := &world{ctx: ctx, config: y.config, judge: y.judge, now: y.config.Storage.Now()}
	name, err := w.kinds().Resolve(ctx, named.Question(q))
	if err != nil {
		return explain.Answer{}, err
	}
	if !y.mayGet(ctx, caller, name) {
		return explain.Answer{}, named.Forbidden(caller, name)
	}
	object, err := w.newest(name)
	if err != nil {
		return explain.Answer{}, err
	}
	answer := explain.Explain(w, name, object)
	if w.err != nil {
		return explain.Answer{}, w.err
	}
	judged := map[explain.Object]bool{}
	return answer.Visible(func(o explain.Object) bool {
		may, known := judged[o]
		if !known {
			may = y.mayGet(ctx, caller, o)
			judged[o] = may
		}
		return may
	}), nil
}

func (y *Why) mayGet(ctx context.Context, caller user.Info, o explain.Object) bool {
	return named.MayGet(ctx, y.config.Authorizer, caller, o)
}

// newest reads the object at the newest state. A server that lost the others answers from what it has.
func (w *world) newest(name explain.Object) (resource.Object, error) {
	table, err := w.table(name.Group, name.Resource)
	if err != nil {
		return nil, err
	}
	if table == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: name.Group, Resource: name.Resource}, name.Name)
	}
	ctx, cancel := context.WithTimeout(w.ctx, newestTimeout)
	defer cancel()
	cached, err := table.Get(ctx, name.Namespace, name.Name, "")
	var status apierrors.APIStatus
	if err != nil && !(errors.As(err, &status) && apierrors.IsNotFound(err)) {
		cached, err = table.Get(w.ctx, name.Namespace, name.Name, "0")
	}
	if err != nil {
		return nil, err
	}
	return cached.Object(), nil
}
