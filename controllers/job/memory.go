package job

import (
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what a term knows of a Job beyond its caches. Losing it harms no count: a new term begins with caches
// that hold everything that was acknowledged, and reads the row of failures from the pods that are still there.
type memory struct {
	mu   sync.Mutex
	jobs map[types.UID]*remembered
}

type remembered struct {
	// written is the Job as its last status write returned it, until the cache has it.
	written *batchv1.Job
	// released are pods that lost their finalizer, until the cache shows it.
	released map[types.UID]bool
	// failures is the row of failures, of pods that are counted; nil when it is not known yet.
	failures *streak
	// last is when a pass wrote something, of the generation.
	last       time.Time
	generation int64
}

func newMemory() *memory { return &memory{jobs: map[types.UID]*remembered{}} }

// of calls f with what is remembered of a Job.
func (m *memory) of(job types.UID, f func(r *remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.jobs[job]
	if r == nil {
		r = &remembered{released: map[types.UID]bool{}}
		m.jobs[job] = r
	}
	f(r)
}

func (m *memory) forget(job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, job)
}

// newest is the Job as this term wrote it, if the cache is not as far.
func (m *memory) newest(job *batchv1.Job) *batchv1.Job {
	m.of(job.UID, func(r *remembered) {
		if r.written == nil {
			return
		}
		if version(r.written) > version(job) {
			job = r.written
		} else {
			r.written = nil
		}
	})
	return job
}

// version is the object's resourceVersion, 0 if it is no number.
func version(o metav1.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// wrote notes the answer to a status write.
func (m *memory) wrote(job *batchv1.Job) {
	m.of(job.UID, func(r *remembered) { r.written = job })
}

// release notes that a pod loses its finalizer.
func (m *memory) release(job, pod types.UID) {
	m.of(job, func(r *remembered) { r.released[pod] = true })
}

// kept notes that a pod has its finalizer still.
func (m *memory) kept(job, pod types.UID) {
	m.of(job, func(r *remembered) { delete(r.released, pod) })
}

// seen notes what the cache now shows of a pod.
func (m *memory) seen(before, after metav1.Object) {
	pod := after
	if pod == nil {
		pod = before
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, p := m.jobs[ref.UID], pod.(*corev1.Pod)
	if r != nil && (after == nil || !tracked(p)) {
		delete(r.released, p.UID)
	}
}

// releasedOf copies the set of pods whose lost finalizer the cache still shows.
func (m *memory) releasedOf(job types.UID) map[types.UID]bool {
	out := map[types.UID]bool{}
	m.of(job, func(r *remembered) {
		for uid := range r.released {
			out[uid] = true
		}
	})
	return out
}

// failures is the row of failures of pods that are counted. A new term reads it from those that are still there.
func (m *memory) failures(job *batchv1.Job, pods []*corev1.Pod) (s streak) {
	m.of(job.UID, func(r *remembered) {
		if r.failures == nil {
			r.failures = new(countedStreak(job, pods))
		}
		s = *r.failures
	})
	return s
}

// countedStreak is the row of failures that follows from the counted pods that are still there.
func countedStreak(job *batchv1.Job, pods []*corev1.Pod) streak {
	var succeeded, failed []*corev1.Pod
	listedSucceeded, listedFailed := uncounted(&job.Status)
	for _, pod := range pods {
		switch {
		case tracked(pod) && !listedSucceeded[pod.UID] && !listedFailed[pod.UID]:
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded = append(succeeded, pod)
		case pod.Status.Phase == corev1.PodFailed:
			failed = append(failed, pod)
		}
	}
	return streak{}.with(succeeded, failed)
}

func (m *memory) setFailures(job types.UID, s streak) {
	m.of(job, func(r *remembered) { r.failures = &s })
}

// rest is how long a pass is put off: one that follows another at once would write a status for each pod of a burst.
// A new generation is never put off.
func (m *memory) rest(job *batchv1.Job, now time.Time) (wait time.Duration) {
	m.of(job.UID, func(r *remembered) {
		if r.generation == job.Generation && !r.last.IsZero() {
			wait = max(0, r.last.Add(batchPeriod).Sub(now))
		}
	})
	return wait
}

// passed notes a pass that wrote.
func (m *memory) passed(job *batchv1.Job, now time.Time) {
	m.of(job.UID, func(r *remembered) { r.last, r.generation = now, job.Generation })
}
