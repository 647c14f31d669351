package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	ktesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// statusRuns is how often upstream plays a world again in which we published something else. It is less than for settled states: one
// side sees two events as one more often than it does other things.
const statusRuns = 5

// history is what a side made of a world: the settled state after each step, and each status of the workload that a watcher saw
// during it, equal ones that follow one another once.
type history struct {
	states    []string
	published [][]status
}

// watcher collects the statuses of the workloads of all worlds of a bubble.
type watcher struct {
	mu   sync.Mutex
	seen map[string][]status // by namespace, since the last take
	last map[string]string
}

// watchStatuses watches a kind until ctx ends.
func watchStatuses(ctx context.Context, t *testing.T, w *reconciletest.World, resource schema.GroupVersionResource) *watcher {
	t.Helper()
	r := &watcher{seen: map[string][]status{}, last: map[string]string{}}
	if resource.Empty() {
		return r
	}
	events, err := w.Watch(ktesting.NewWatchActionWithOptions(resource, metav1.NamespaceAll, metav1.ListOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, events.Stop)
	go func() {
		for event := range events.ResultChan() {
			r.see(event)
		}
	}()
	return r
}

func (r *watcher) see(event watch.Event) {
	object, err := meta.Accessor(event.Object)
	if err != nil || object.GetName() != workloadName || event.Type == watch.Deleted {
		return
	}
	is := statusOf(event.Object)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ns := object.GetNamespace(); r.last[ns] != is.String() {
		r.last[ns] = is.String()
		r.seen[ns] = append(r.seen[ns], is)
	}
}

// take returns what was seen of a namespace since the last take.
func (r *watcher) take(namespace string) []status {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.seen[namespace]
	delete(r.seen, namespace)
	return all
}

// A status is one that was published, without what differs from run to run: times, names that are chance, and uids.
type status struct {
	// about is the generation that the status is about, and whether the controller has seen it.
	about string
	// rest is all but the counts.
	rest   string
	counts map[string]int64
}

func (s status) String() string { return fmt.Sprintf("%s%s %v", s.about, s.rest, s.counts) }

// Whether a controller has seen the newest generation.
const seen, unseen = "seen", "unseen"

func statusOf(o runtime.Object) status {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return status{rest: err.Error()}
	}
	found, _ := fields["status"].(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	out, rest := status{counts: map[string]int64{}}, map[string]any{}
	for field, value := range found {
		n, counts := value.(int64)
		switch {
		case field == "observedGeneration":
			out.about = fmt.Sprintf("generation %v %s ", metadata["generation"], unseen)
			if metadata["generation"] == value {
				out.about = fmt.Sprintf("generation %v %s ", metadata["generation"], seen)
			}
		case counts:
			out.counts[field] = n
		default:
			rest[field] = value
		}
	}
	text, err := json.Marshal(lasting(rest))
	if err != nil {
		return status{rest: err.Error()}
	}
	out.rest = string(text)
	return out
}

// progressing is what a Deployment says of its newest ReplicaSet, or of itself where it has none yet.
var progressing = regexp.MustCompile(`(ReplicaSet|Deployment) "[^"]*" is progressing\.`)

// lacking is of which pod an autoscaler says that it requests nothing: upstream says it of any.
var lacking = regexp.MustCompile(`(missing( pod-level)? request for \w+ in|container \w+ not found in).*Pod \S+`)

// lasting leaves out what is chance.
func lasting(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "observedGeneration", "uid", "resourceVersion":
			case "startTime", "completionTime", "lastScaleTime":
				out[key] = "set"
			case "reason":
				out[key] = cmp.Or(goesOn[fmt.Sprint(v[key])], fmt.Sprint(v[key]))
			case "message":
				out[key] = lacking.ReplaceAllString(progressing.ReplaceAllString(withoutNames(fmt.Sprint(v[key])), "It is progressing."), "$1 some pod")
			case "uncountedTerminatedPods":
			default:
				out[key] = lasting(v[key])
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = lasting(item)
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return out
	}
	return value
}

// span is between which numbers a count is.
type span struct{ low, high int64 }

// publishable is what upstream published in a step of a world, in all runs: by what a status is about, each rest, and the span of
// each count. Between two events there may be a third, and who looks at another moment sees another part of them: so a status may
// have any counts between. It may not show what upstream shows of another generation only.
type publishable map[string]*shown

type shown struct {
	rests map[string]bool
	spans map[string]span
}

func (p publishable) add(all ...status) {
	for _, s := range all {
		known := p[s.about]
		if known == nil {
			known = &shown{rests: map[string]bool{}, spans: map[string]span{}}
			for count, n := range s.counts {
				known.spans[count] = span{n, n}
			}
			p[s.about] = known
		}
		known.rests[s.rest] = true
		for count := range known.counts(s) {
			old, n := known.spans[count], s.counts[count]
			known.spans[count] = span{min(old.low, n), max(old.high, n)}
		}
	}
}

// addRest adds a rest to what upstream has published about something.
func (p publishable) addRest(about, rest string) {
	if known := p[about]; known != nil {
		known.rests[rest] = true
	}
}

func (p publishable) has(s status, may judgement) bool {
	known := p[s.about]
	if known == nil || !known.rests[s.rest] {
		return false
	}
	for count := range known.counts(s) {
		if !may(count, s.counts, known.spans[count]) {
			return false
		}
	}
	return true
}

// A judgement says whether one of the counts may be as it is where upstream showed those of a span.
type judgement func(count string, counts map[string]int64, shown span) bool

// between is that of kinds that count their pods themselves.
func between(count string, counts map[string]int64, shown span) bool {
	return shown.low <= counts[count] && counts[count] <= shown.high
}

// noMoreFinished is that of Deployments, which sum what several ReplicaSets tell one after the other, in any order: they may not look
// more finished than upstream's ever did in the step. How many are unavailable we count of each ReplicaSet for itself, and as the
// pass leaves it; that misleads only where all other pods are available.
func noMoreFinished(count string, counts map[string]int64, shown span) bool {
	switch count {
	case "unavailableReplicas":
		return counts[count] > 0 || shown.low == 0 || counts["replicas"] != counts["availableReplicas"]
	case "updatedReplicas", "readyReplicas", "availableReplicas":
		return counts[count] <= shown.high
	}
	return true
}

// fewerCurrent is why upstream's StatefulSets may count fewer pods of the current revision than ours.
const fewerCurrent = "upstream takes every outdated pod that it deletes off those of the current revision, also one of another"

// noFewerCurrent is that of StatefulSets with this excuse: there may be more of the current revision, up to all that are there.
func noFewerCurrent(count string, counts map[string]int64, shown span) bool {
	if count == "currentReplicas" {
		return shown.low <= counts[count] && counts[count] <= counts["replicas"]
	}
	return between(count, counts, shown)
}

// counts are the names of all counts; one that is missing is 0.
func (k *shown) counts(s status) map[string]bool {
	all := map[string]bool{}
	for count := range k.spans {
		all[count] = true
	}
	for count := range s.counts {
		all[count] = true
	}
	return all
}

// learn adds what upstream published in each step of a run, and had published before it. What it first shows of a generation it may
// write before it says that it has seen it.
func learn(steps []publishable, h history) {
	for n := range steps {
		before := lastOf(h.published[:n])
		steps[n].add(before...)
		steps[n].add(h.published[n]...)
		for _, s := range h.published[n] {
			if len(before) > 0 && s.rest != before[0].rest {
				steps[n].addRest(strings.Replace(s.about, unseen, seen, 1), s.rest)
			}
		}
	}
}

// lastOf is the newest status of some steps.
func lastOf(steps [][]status) []status {
	all := slices.Concat(steps...)
	return all[max(0, len(all)-1):]
}

// oddPart bounds the worlds in which we may publish what upstream did not: what a pass sees is chance, and seldom none of upstream's
// runs sees the same. More than one world in oddPart is no chance.
const oddPart = 100

// judge notes a world in which we published a status that upstream could not have, in any of its runs.
func (c *comparison) judge(first uint64, i int, ours, theirs history) {
	n, may := alike(ours.states, theirs.states), judgement(between)
	if c.kind.name == "deployment" {
		may = noMoreFinished
	}
	steps := make([]publishable, n)
	for step := range steps {
		steps[step] = publishable{}
		c.statuses += len(ours.published[step])
	}
	for run := 0; ; run++ {
		learn(steps, theirs)
		step, odd := oddStatus(steps, ours, may)
		if odd == nil {
			return
		}
		if run == statusRuns && c.kind.name == "statefulset" {
			if _, other := oddStatus(steps, ours, noFewerCurrent); other == nil {
				c.excused[fewerCurrent]++
				return
			}
		}
		if run == statusRuns {
			c.odd = append(c.odd, first+uint64(i))
			c.tell(first+uint64(i), step, odd, ours, theirs)
			return
		}
		theirs = play(c.t, c.kind, c.kind.sides[1], first)[i]
	}
}

// oddStatus is the first of ours that upstream could not have published.
func oddStatus(steps []publishable, ours history, may judgement) (int, *status) {
	for step, legal := range steps {
		for _, s := range ours.published[step] {
			if !legal.has(s, may) {
				return step, &s
			}
		}
	}
	return 0, nil
}

func (c *comparison) tell(seed uint64, step int, odd *status, ours, theirs history) {
	if len(c.odd) > reportsMax {
		return
	}
	c.t.Logf("%s, seed %d, step %d: only we published\n  %v\nours:\n  %v\nupstream:\n  %v\n%s", c.kind.name, seed, step, odd,
		lines(ours.published[step]), lines(theirs.published[step]), strings.Join(ours.states[max(0, step-1):step+1], ""))
}

// judgeAll fails if there are too many of these worlds.
func (c *comparison) judgeAll() {
	if c.kind.watched.Empty() {
		return
	}
	c.t.Logf("%d published statuses, %d worlds with one that upstream did not publish: %v", c.statuses, len(c.odd), c.odd)
	if len(c.odd) > max(1, c.played/oddPart) {
		c.t.Errorf("%d worlds of %d are too many with a status that upstream could not have published", len(c.odd), c.played)
	}
}

func lines(all []status) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.String()
	}
	return strings.Join(texts, "\n  ")
}
