package differential

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// taintsDone is how long after a change both sides have done all: tolerations end, and the status of a rule is told every ten seconds.
const taintsDone = 100 * time.Second

// taintsWorld are pods with devices, by entries and by extended resources, of a driver of their own, whose devices are tainted by
// slices and by rules.
type taintsWorld struct {
	plain
	pods, rules int
}

func newTaints(*generator) workload { return &taintsWorld{} }

// ends: pods do not end, unless they are deleted. Upstream evicts pods that have finished; ours leaves them.
func (l *taintsWorld) ends() (end, succeed float64) { return 0, 0 }

// evictedPods is what a rule tells of the pods that went because of it.
var evictedPods = regexp.MustCompile(`(NotStarted|Completed) ""|(NotStarted|Completed)? ?"?[0-9]+ pods? evicted since starting the controller\."`)

// excuse: upstream counts a pod that is being deleted already, once, as evicted for a rule, although it leaves it alone.
func (l *taintsWorld) excuse(ours, upstream string) string {
	if strings.Contains(ours, " deleted") && evictedPods.ReplaceAllString(ours, "") == evictedPods.ReplaceAllString(upstream, "") {
		return "upstream counts a pod as evicted that somebody else has deleted"
	}
	return ""
}

func (w *world) slice() *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + w.namespace}}
	s.Spec.Driver, s.Spec.Pool.Name = w.namespace, "pool"
	for i := range 3 {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("d-%d", i)})
	}
	return s
}

func (l *taintsWorld) create(w *world) { reconciletest.Add(w.World, w.slice()) }

func (l *taintsWorld) edit(g *generator) (string, func(w *world)) {
	text, do := l.changes(g)
	return text, func(w *world) {
		do(w)
		time.Sleep(taintsDone)
	}
}

func (l *taintsWorld) changes(g *generator) (string, func(w *world)) {
	seed := g.Uint64()
	switch g.IntN(7) {
	case 0, 1:
		return "slice is tainted", func(w *world) {
			g := newGenerator(seed)
			reconciletest.Edit(w.World, w.slice(), func(s *resourcev1.ResourceSlice) {
				for i := range s.Spec.Devices {
					s.Spec.Devices[i].Taints = deviceTaints(g)
				}
			})
		}
	case 2:
		name := fmt.Sprintf("rule-%d", l.rules)
		l.rules++
		return name, func(w *world) { w.addRule(newGenerator(seed), name) }
	case 3:
		name := fmt.Sprintf("rule-%d", g.IntN(l.rules+1))
		return name + " goes", func(w *world) {
			_ = w.Client.ResourceV1().DeviceTaintRules().Delete(context.Background(), w.namespace+name, metav1.DeleteOptions{})
		}
	case 4:
		name := fmt.Sprintf("claim-pod-%d", g.IntN(l.pods+1))
		return name + " is released", func(w *world) {
			claims := w.Client.ResourceV1().ResourceClaims(w.namespace)
			changeStatus(w, claims, name, func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = nil })
		}
	default:
		name := fmt.Sprintf("pod-%d", l.pods)
		l.pods++
		return name, func(w *world) { w.addTaintedPod(newGenerator(seed), name) }
	}
}

// deviceTaints are up to two, of now.
func deviceTaints(g *generator) (taints []resourcev1.DeviceTaint) {
	for _, key := range []string{"a", "b"} {
		if g.chance(3) {
			taints = append(taints, resourcev1.DeviceTaint{Key: key, Effect: taintEffect(g), TimeAdded: new(metav1.Now())})
		}
	}
	return taints
}

func taintEffect(g *generator) resourcev1.DeviceTaintEffect {
	evict, place, none := resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone
	return pick(g, evict, evict, place, none)
}

func (w *world) addRule(g *generator, name string) {
	name = w.namespace + name
	r := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	r.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: new(w.namespace)}
	if g.chance(2) {
		r.Spec.DeviceSelector.Device = new(fmt.Sprintf("d-%d", g.IntN(3)))
	}
	r.Spec.Taint = resourcev1.DeviceTaint{Key: pick(g, "a", "b"), Effect: taintEffect(g), TimeAdded: new(metav1.Now())}
	reconciletest.Add(w.World, r)
}

// addTaintedPod adds a pod with a claim of one or two devices, which is made for it or not, and reserved for it or not.
func (w *world) addTaintedPod(g *generator, name string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, UID: types.UID(w.namespace + name)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: name}}
	p.Spec.NodeName = pick(g, "node-0", "node-0", "")
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Namespace: w.namespace}}
	if !g.chance(4) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: p.UID, Controller: new(true)}}
	}
	switch g.IntN(3) {
	case 0:
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new(c.Name)}}
	case 1:
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: new("t")}}
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c", ResourceClaimName: new(c.Name)}}
	default:
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: c.Name}
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for range 1 + g.IntN(2) {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "r", Driver: w.namespace, Pool: "pool", Device: fmt.Sprintf("d-%d", g.IntN(3)), Tolerations: deviceTolerations(g)})
	}
	if !g.chance(5) {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: p.UID}}
	}
	reconciletest.Add(w.World, c)
	reconciletest.Add(w.World, p)
}

func deviceTolerations(g *generator) (list []resourcev1.DeviceToleration) {
	for _, key := range []string{"a", "b"} {
		if g.chance(2) {
			list = append(list, resourcev1.DeviceToleration{Key: key, Operator: resourcev1.DeviceTolerationOpExists,
				Effect: resourcev1.DeviceTaintEffectNoExecute, TolerationSeconds: pick(g, nil, new(int64(-3)), new(int64(17)), new(int64(257)))})
		}
	}
	return list
}

func (l *taintsWorld) describe(w *world, out *strings.Builder) {
	for _, p := range w.ordered() {
		fmt.Fprintf(out, "  %s %s", p.Name, look(&p))
		for _, c := range p.Status.Conditions {
			fmt.Fprintf(out, " %s %q", c.Reason, c.Message)
		}
		out.WriteString("\n")
	}
	rules, err := w.Client.ResourceV1().DeviceTaintRules().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(rules.Items, func(a, b resourcev1.DeviceTaintRule) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range rules.Items {
		if r.Spec.DeviceSelector == nil || *r.Spec.DeviceSelector.Driver != w.namespace {
			continue
		}
		fmt.Fprintf(out, "  %s %s", r.Name, r.Spec.Taint.Effect)
		for _, c := range r.Status.Conditions {
			fmt.Fprintf(out, " %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
		}
		out.WriteString("\n")
	}
}
