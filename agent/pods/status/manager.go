package status

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

const (
	// DefaultDebounce is how long an unimportant change waits for company.
	DefaultDebounce = 50 * time.Millisecond
	// senders bounds the status requests in flight.
	senders  = 8
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
)

// Config of a Manager. Client is required.
type Config struct {
	Client   kubernetes.Interface
	Debounce time.Duration
	Logger   *slog.Logger
}

// Manager sends statuses to the API. Use NewManager, then Run.
type Manager struct {
	client   kubernetes.Interface
	debounce time.Duration
	logger   *slog.Logger
	queue    workqueue.TypedRateLimitingInterface[types.UID]

	mu   sync.Mutex
	pods map[types.UID]*entry
}

// entry is one pod's newest status and what the API is known to hold.
type entry struct {
	base     *corev1.Pod // newest object seen, from the informer or from a patch
	want     corev1.PodStatus
	accepted chan struct{} // closed when want is in the API, or never will be
	gone     bool
}

// NewManager returns a Manager that sends nothing before Run.
func NewManager(cfg Config) *Manager {
	m := &Manager{client: cfg.Client, debounce: cfg.Debounce, logger: cfg.Logger, pods: map[types.UID]*entry{}}
	if m.debounce == 0 {
		m.debounce = DefaultDebounce
	}
	if m.logger == nil {
		m.logger = slog.New(slog.DiscardHandler)
	}
	m.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](retryMin, retryMax))
	return m
}

// Run sends until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range senders {
		workers.Go(func() { m.work(ctx) })
	}
	<-ctx.Done()
	m.queue.ShutDown()
	workers.Wait()
}

// Set makes want the pod's status, to be sent soon. Pod is the newest object
// from the informer.
func (m *Manager) Set(pod *corev1.Pod, want corev1.PodStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID]
	if e == nil {
		e = &entry{base: pod, accepted: closed()}
		m.pods[pod.UID] = e
	}
	if newer(pod, e.base) {
		e.base = pod
	}
	if e.gone {
		return
	}
	e.want = want
	have := e.base.Status
	if equality.Semantic.DeepEqual(have, Merge(have, want)) {
		return
	}
	if isClosed(e.accepted) {
		e.accepted = make(chan struct{})
	}
	if urgent(have, want) {
		m.queue.Add(pod.UID)
	} else {
		m.queue.AddAfter(pod.UID, m.debounce)
	}
}

// Flush waits until the pod's last status is accepted or refused for good, or
// the pod is gone.
func (m *Manager) Flush(ctx context.Context, uid types.UID) error {
	m.mu.Lock()
	e := m.pods[uid]
	m.mu.Unlock()
	if e == nil {
		return nil
	}
	m.queue.Add(uid)
	for {
		m.mu.Lock()
		accepted := e.accepted
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-accepted:
			return nil
		}
	}
}

// Forget drops what is known about a pod that is gone.
func (m *Manager) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil && !isClosed(e.accepted) {
		close(e.accepted)
	}
	delete(m.pods, uid)
}

func (m *Manager) work(ctx context.Context) {
	for {
		uid, shutdown := m.queue.Get()
		if shutdown {
			return
		}
		if err := m.send(ctx, uid); err != nil && ctx.Err() == nil {
			m.logger.Warn("pod status not accepted yet", "uid", string(uid), "err", err)
			m.queue.AddRateLimited(uid)
		} else {
			m.queue.Forget(uid)
		}
		m.queue.Done(uid)
	}
}

// send patches what differs between the API's status and ours. The queue lets
// only one goroutine hold a uid.
func (m *Manager) send(ctx context.Context, uid types.UID) error {
	m.mu.Lock()
	e := m.pods[uid]
	if e == nil || e.gone {
		m.mu.Unlock()
		return nil
	}
	base, want := e.base, Merge(e.base.Status, e.want)
	m.mu.Unlock()
	got, err := m.patch(ctx, base, want)
	if err != nil {
		return m.refused(ctx, e, base, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if newer(got, e.base) {
		e.base = got
	}
	m.settle(uid, e, got)
	return nil
}

// settle tells Flush about success, or sends again what was set meanwhile.
func (m *Manager) settle(uid types.UID, e *entry, got *corev1.Pod) {
	if !equality.Semantic.DeepEqual(got.Status, Merge(got.Status, e.want)) {
		m.queue.Add(uid)
		return
	}
	if !isClosed(e.accepted) {
		close(e.accepted)
	}
}

func (m *Manager) patch(ctx context.Context, base *corev1.Pod, want corev1.PodStatus) (*corev1.Pod, error) {
	if equality.Semantic.DeepEqual(base.Status, want) {
		return base, nil
	}
	body, err := patchBody(base, want)
	if err != nil {
		return nil, err
	}
	return m.client.CoreV1().
		Pods(base.Namespace).
		Patch(ctx, base.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
}

// patchBody carries the uid, so that a namesake created meanwhile refuses it.
func patchBody(base *corev1.Pod, want corev1.PodStatus) ([]byte, error) {
	from, err := json.Marshal(corev1.Pod{Status: base.Status})
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: base.UID}, Status: want})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(from, to, corev1.Pod{})
}

// refused reads the pod again: gone or replaced means our status is moot.
func (m *Manager) refused(ctx context.Context, e *entry, base *corev1.Pod, cause error) error {
	got, err := m.client.CoreV1().Pods(base.Namespace).Get(ctx, base.Name, metav1.GetOptions{})
	m.mu.Lock()
	defer m.mu.Unlock()
	if apierrors.IsNotFound(err) || (err == nil && got.UID != base.UID) {
		e.gone = true
		if !isClosed(e.accepted) {
			close(e.accepted)
		}
		return nil
	}
	if err == nil {
		e.base = got
	}
	if apierrors.IsInvalid(cause) { // trying again gives the same answer, and who waits would wait for ever
		m.logger.Error("pod status refused", "pod", base.Namespace+"/"+base.Name, "err", cause)
		if !isClosed(e.accepted) {
			close(e.accepted)
		}
		return nil
	}
	return cause
}

// Merge is want with the conditions of others kept from have, and with the
// transition times of have where nothing changed.
func Merge(have, want corev1.PodStatus) corev1.PodStatus {
	out := *want.DeepCopy()
	for i := range out.Conditions {
		for _, old := range have.Conditions {
			if old.Type == out.Conditions[i].Type && old.Status == out.Conditions[i].Status {
				out.Conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	var foreign []corev1.PodCondition
	for _, old := range have.Conditions {
		again := func(c corev1.PodCondition) bool { return c.Type == old.Type } // DisruptionTarget has several writers
		if !slices.Contains(owned, old.Type) && !slices.ContainsFunc(out.Conditions, again) {
			foreign = append(foreign, old)
		}
	}
	out.Conditions = ordered(have.Conditions, append(out.Conditions, foreign...))
	out.NominatedNodeName, out.Resize = have.NominatedNodeName, have.Resize
	out.ResourceClaimStatuses, out.ExtendedResourceClaimStatus = have.ResourceClaimStatuses, have.ExtendedResourceClaimStatus
	if out.StartTime != nil && have.StartTime != nil {
		out.StartTime = have.StartTime
	}
	return out
}

// ordered puts conditions in the order they have in the API, new ones last: a
// merge patch keeps that order, and comparing would see a difference for ever.
func ordered(have, list []corev1.PodCondition) []corev1.PodCondition {
	rank := func(c corev1.PodCondition) int {
		i := slices.IndexFunc(have, func(h corev1.PodCondition) bool { return h.Type == c.Type })
		if i < 0 {
			return len(have)
		}
		return i
	}
	slices.SortStableFunc(list, func(a, b corev1.PodCondition) int { return rank(a) - rank(b) })
	return list
}

// urgent changes are those somebody waits for.
func urgent(have, want corev1.PodStatus) bool {
	return have.Phase != want.Phase && want.Phase != corev1.PodPending ||
		readiness(have) != readiness(want) || terminal(want.Phase)
}

func readiness(s corev1.PodStatus) corev1.ConditionStatus {
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return corev1.ConditionTrue
		}
	}
	return corev1.ConditionFalse
}

// newer reports whether a is at least as new as b. Versions that cannot be
// compared (a fake API) count as newer.
func newer(a, b *corev1.Pod) bool {
	n, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || n >= 0
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
