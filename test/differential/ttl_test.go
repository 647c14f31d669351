package differential

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ttlWorld are Jobs that have, or get, a time to live after they have ended.
type ttlWorld struct {
	plain
	first []*batchv1.Job
}

func newTTL(g *generator) workload {
	l := &ttlWorld{}
	for i := range 1 + g.IntN(5) {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("j-%d", i)}}
		j.Spec.TTLSecondsAfterFinished = timeToLive(g)
		j.Spec.Template = template(g)
		if g.chance(4) {
			j.Finalizers = []string{"test/keep"}
		}
		l.first = append(l.first, j)
	}
	return l
}

func timeToLive(g *generator) *int32 {
	return pick(g, nil, new(int32(0)), new(int32(7)), new(int32(27)), new(int32(127)), new(int32(1<<31-1)))
}

func (l *ttlWorld) create(w *world) {
	for _, j := range l.first {
		j := j.DeepCopy()
		j.Namespace = w.namespace
		create(w, w.Client.BatchV1().Jobs(w.namespace), j)
	}
}

func (l *ttlWorld) edit(g *generator) (string, func(w *world)) {
	name, ttl, seed := l.first[g.IntN(len(l.first))].Name, timeToLive(g), g.Uint64()
	switch g.IntN(3) {
	case 0:
		return fmt.Sprint(name, " lives ", deref(ttl)), func(w *world) {
			change(w, w.Client.BatchV1().Jobs(w.namespace), name, func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ttl })
		}
	case 1:
		return name + " loses its finalizers", func(w *world) {
			change(w, w.Client.BatchV1().Jobs(w.namespace), name, func(j *batchv1.Job) { j.Finalizers = nil })
		}
	default:
		return "Jobs end", func(w *world) { w.endJobs(newGenerator(seed)) }
	}
}

func (l *ttlWorld) describe(w *world, out *strings.Builder) {
	for _, j := range w.jobs() {
		fmt.Fprintf(out, "  job %s lives %v ended=%d deleted=%v finalizers=%v\n", j.Name, deref(j.Spec.TTLSecondsAfterFinished),
			len(j.Status.Conditions), j.DeletionTimestamp != nil, j.Finalizers)
	}
}
