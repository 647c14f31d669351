package cronjob

import (
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// memory is what a term knows of a CronJob beyond its caches. Losing it doubles no Job.
type memory struct {
	mu       sync.Mutex
	cronJobs map[reconcile.Key]*remembered
}

type remembered struct {
	uid types.UID
	// written is the CronJob as its last status write returned it, until the cache has it.
	written *batchv1.CronJob
	// schedule and zone are those of the last pass; they are so since edited, or since before the term if that is zero.
	schedule, zone string
	edited         time.Time
	// deleted are Jobs that were deleted, until the cache shows it.
	deleted map[types.UID]bool
	// told are the complaints of the last pass.
	told []event
}

func newMemory() *memory { return &memory{cronJobs: map[reconcile.Key]*remembered{}} }

// of calls f with what is remembered of a CronJob.
func (m *memory) of(cronJob *batchv1.CronJob, f func(r *remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := reconcile.KeyOf(cronJob)
	r := m.cronJobs[key]
	if r == nil || r.uid != cronJob.UID {
		schedule, zone := scheduleOf(cronJob)
		r = &remembered{uid: cronJob.UID, schedule: schedule, zone: zone, deleted: map[types.UID]bool{}}
		m.cronJobs[key] = r
	}
	f(r)
}

func (m *memory) forget(key reconcile.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.cronJobs, key)
}

// wrote notes the answer to a status write.
func (m *memory) wrote(cronJob *batchv1.CronJob) {
	m.of(cronJob, func(r *remembered) { r.written = cronJob })
}

// newest is the CronJob as this term wrote it, if the cache is not as far.
func (m *memory) newest(cronJob *batchv1.CronJob) *batchv1.CronJob {
	m.of(cronJob, func(r *remembered) {
		if r.written == nil {
			return
		}
		if version(r.written) > version(cronJob) {
			cronJob = r.written
		} else {
			r.written = nil
		}
	})
	return cronJob
}

// version is the object's resourceVersion, 0 if it is no number.
func version(o metav1.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// edited is when this term saw the schedule or its zone change last; zero for never.
func (m *memory) edited(cronJob *batchv1.CronJob, now time.Time) (at time.Time) {
	m.of(cronJob, func(r *remembered) {
		if schedule, zone := scheduleOf(cronJob); schedule != r.schedule || zone != r.zone {
			r.schedule, r.zone, r.edited = schedule, zone, now
		}
		at = r.edited
	})
	return at
}

// untold are the complaints that the last pass did not have.
func (m *memory) untold(cronJob *batchv1.CronJob, complaints []event) (fresh []event) {
	m.of(cronJob, func(r *remembered) {
		for _, e := range complaints {
			if !slices.Contains(r.told, e) {
				fresh = append(fresh, e)
			}
		}
		r.told = complaints
	})
	return fresh
}

// removed notes that a Job was deleted.
func (m *memory) removed(cronJob *batchv1.CronJob, job types.UID) {
	m.of(cronJob, func(r *remembered) { r.deleted[job] = true })
}

// present are the Jobs without those of which only the cache does not know yet that they were deleted.
func (m *memory) present(cronJob *batchv1.CronJob, owned []*batchv1.Job) (jobs []*batchv1.Job) {
	m.of(cronJob, func(r *remembered) {
		unseen := map[types.UID]bool{}
		for _, job := range owned {
			if r.deleted[job.UID] && job.DeletionTimestamp == nil {
				unseen[job.UID] = true
				continue
			}
			jobs = append(jobs, job)
		}
		r.deleted = unseen
	})
	return jobs
}
