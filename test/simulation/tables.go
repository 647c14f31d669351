package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

const (
	counters         = 3
	counterNamespace = "simulated"
	countLabel       = "count"
	// interleavedMax is how much may happen while a table waits for the log.
	interleavedMax = 3
)

// scheme and all kinds are made once; nothing changes them.
var scheme = sync.OnceValue(kinds.NewScheme)

// tables are the ConfigMaps as each replica serves them, used to count.
type tables struct {
	world  *World
	served [replicaCount]*storage.Table
	// acknowledged and unknown increments, by counter.
	acknowledged, unknown [counters]int
	continued             string
	listed                []string
}

func newTables(w *World) *tables {
	t := &tables{world: w}
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	for i, r := range w.replicas {
		log := &tableLog{world: w, replica: r, proposer: proposer{session: w.openSession()}}
		store := storage.New(log, scheme(), []*resource.Any{configMaps()})
		t.served[i] = store.Table(gvr)
	}
	return t
}

// configMaps is the kind, as production has it.
var configMaps = sync.OnceValue(func() *resource.Any {
	for _, kind := range kinds.All() {
		if kind.GroupVersionKind == corev1.SchemeGroupVersion.WithKind("ConfigMap") {
			return kind
		}
	}
	panic("simulation: no ConfigMaps are served")
})

func counterName(i int) string { return fmt.Sprint("counter-", i) }

// increment is a read-modify-write through any replica, however old its state.
func (t *tables) increment() error {
	i, table := t.world.random.IntN(counters), t.served[t.world.random.IntN(replicaCount)]
	_, err := table.Write(context.Background(), counterNamespace, counterName(i), func(v *storage.View) (*storage.Change, error) {
		obj := &corev1.ConfigMap{}
		if v.Current != nil {
			obj = v.Current.Copy().(*corev1.ConfigMap)
		}
		obj.Namespace, obj.Name = counterNamespace, counterName(i)
		obj.Labels = map[string]string{countLabel: strconv.Itoa(count(obj) + 1)}
		return &storage.Change{Object: obj}, nil
	})
	t.world.note("increment %d: %v", i, err)
	switch {
	case err == nil:
		t.acknowledged[i]++
		t.world.did.Increments++
	case apierrors.IsTimeout(err):
		t.unknown[i]++
	case !apierrors.IsConflict(err):
		return err
	}
	return nil
}

func count(obj runtime.Object) int {
	n, _ := strconv.Atoi(obj.(*corev1.ConfigMap).Labels[countLabel])
	return n
}

// read is linearizable, so it counts at least what was acknowledged before.
func (t *tables) read() error {
	i := t.world.random.IntN(counters)
	return t.counted(i, t.served[t.world.random.IntN(replicaCount)])
}

func (t *tables) counted(i int, table *storage.Table) error {
	least, most := t.acknowledged[i], t.acknowledged[i]+t.unknown[i]
	found, err := table.Get(context.Background(), counterNamespace, counterName(i), "")
	n := 0
	switch {
	case err == nil:
		n = count(found.Object())
	case !apierrors.IsNotFound(err):
		return err
	}
	if n < least || n > most {
		return fmt.Errorf("counter %d is %d after %d acknowledged increments and %d unknown", i, n, least, most-least)
	}
	return nil
}

// page reads one page of all counters, each from another replica.
func (t *tables) page() error {
	table := t.served[t.world.random.IntN(replicaCount)]
	page, err := table.List(context.Background(), storage.ListOptions{Limit: 1, Continue: t.continued})
	if apierrors.IsResourceExpired(err) {
		t.continued, t.listed = "", nil
		return nil
	}
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		t.listed = append(t.listed, item.Object().GetName()+"@"+item.Object().GetResourceVersion())
	}
	if t.continued = page.Continue; t.continued != "" {
		return nil
	}
	listed := t.listed
	t.listed = nil
	return t.isCut(page.ResourceVersion, listed)
}

func (t *tables) isCut(resourceVersion string, listed []string) error {
	revision, err := storage.ParseResourceVersion(resourceVersion)
	if err != nil {
		return err
	}
	prefix := "/core/configmaps/" + counterNamespace + "/"
	all := t.world.model.at(revision, prefix)
	var want []string
	for _, key := range keys(all) {
		want = append(want, fmt.Sprintf("%s@%d", key[len(prefix):], all[key].mod))
	}
	t.world.note("listed at %d: %v", revision, listed)
	if diff := cmp.Diff(want, listed); diff != "" {
		return fmt.Errorf("the pages at revision %d are no cut: %s", revision, diff)
	}
	return nil
}

func (t *tables) judge() error {
	var errs []error
	for i := range counters {
		for _, table := range t.served {
			errs = append(errs, t.counted(i, table))
		}
	}
	return errors.Join(errs...)
}

// tableLog is the log as one replica's tables see it. While they wait for it,
// other things happen.
type tableLog struct {
	world    *World
	replica  *replica
	proposer proposer
}

var _ storage.Log = (*tableLog)(nil)

// Led never ends.
func (l *tableLog) Led() context.Context { return context.Background() }

func (l *tableLog) interleave() error {
	l.world.depth++
	defer func() { l.world.depth-- }()
	for range l.world.random.IntN(interleavedMax + 1) {
		if err := l.world.step(); err != nil {
			return err
		}
	}
	return nil
}

// Propose answers on the results of the leader, which is any replica here; or the
// answer is lost, with or without the command.
func (l *tableLog) Propose(_ context.Context, c command.Command) (command.Result, error) {
	if err := l.interleave(); err != nil {
		return command.Result{}, err
	}
	c = l.proposer.next(c)
	if l.world.chance(12) {
		return command.Result{}, raftstore.ErrOutcomeUnknown
	}
	leader := l.world.anyReplica()
	l.world.commit(c)
	for l.world.chance(5) { // sent again, as to a new leader
		if err := l.interleave(); err != nil {
			return command.Result{}, err
		}
		l.world.commit(c)
	}
	results, err := leader.answer()
	if err != nil {
		return command.Result{}, err
	}
	if l.world.chance(12) {
		return command.Result{}, raftstore.ErrOutcomeUnknown
	}
	return results, l.interleave()
}

// answer catches up and returns the result of the newest entry's only command.
func (r *replica) answer() (command.Result, error) {
	if r.applied == len(r.world.log) {
		return command.Result{}, errors.New("the replica was ahead of the log")
	}
	results, err := r.deliver(len(r.world.log))
	if err != nil {
		return command.Result{}, err
	}
	return results[0], nil
}

func (l *tableLog) Root() *state.Root { return l.replica.state.Root() }

// ReadIndex catches up with all that is committed.
func (l *tableLog) ReadIndex(context.Context) (*state.Root, error) {
	if err := l.interleave(); err != nil {
		return nil, err
	}
	_, err := l.replica.deliver(len(l.world.log))
	return l.replica.state.Root(), err
}

// WaitRevision lets entries come until the revision is here.
func (l *tableLog) WaitRevision(ctx context.Context, revision uint64) (*state.Root, error) {
	for l.replica.state.Root().Revision < revision {
		if l.replica.applied == len(l.world.log) {
			return nil, context.DeadlineExceeded
		}
		if _, err := l.replica.deliver(1); err != nil {
			return nil, err
		}
	}
	return l.replica.state.Root(), nil
}

func (l *tableLog) RootAt(revision uint64) (*state.Root, error) {
	return l.replica.state.RootAt(revision)
}

func (l *tableLog) EventAt(revision uint64) (watch.Event, bool) {
	return l.replica.state.Ring().At(revision)
}

func (l *tableLog) Watch(prefix string, after uint64) (*watch.Watcher, error) {
	return l.replica.state.Ring().Watch(prefix, after)
}
