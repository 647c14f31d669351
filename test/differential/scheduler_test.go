package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstreamplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/setpoint-io/setpoint/controllers/scheduler"
)

// opinion is what a side says of a pod.
type opinion struct {
	// refusal is why no node can help; the nodes are not looked at then.
	refusal string
	nodes   map[string]nodeOpinion
}

// nodeOpinion is what the plugins say of a node: why each of them refuses it, or how much more than the worst of the nodes
// that fit each of them likes it.
type nodeOpinion struct {
	refusals map[string]string
	scores   map[string]int64
}

// schedulerPlugins asks the plugins of both sides about the same pods, each on its own: about every node, also one
// that another plugin refuses. The order of plugins and what a pod is given in the end follow from it. schedulerPreemption
// compares preemption.
func schedulerPlugins(t *testing.T) {
	metrics.Register()
	var asked, refused, scored int
	excused := map[string]int{}
	var differ []string
	for i := range *worlds {
		seed := *seed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			w := newPlacement(newGenerator(seed))
			ours, theirs := judges(t, w)
			for _, pod := range w.pending {
				asked++
				got, want := ours(pod), theirs(pod)
				refused, scored = refused+want.refusals(), scored+want.preferences()
				for plugin, why := range excuses(pod) {
					if a, b := got.withoutScores(plugin), want.withoutScores(plugin); a || b {
						excused[why]++
					}
				}
				for _, difference := range differences(got, want) {
					text := fmt.Sprintf("seed %d: %s", seed, difference)
					if len(differ) < reportsMax {
						text += "\n" + w.describe(pod)
					}
					differ = append(differ, text)
				}
			}
		})
	}
	for _, text := range differ {
		t.Error(text)
	}
	t.Logf("%d worlds from seed %d: %d pods, %d refusals of nodes, %d preferences; %d differ", *worlds, *seed, asked, refused, scored, len(differ))
	for why, n := range excused {
		t.Logf("excused %d times: %s", n, why)
	}
	if refused == 0 || scored == 0 {
		t.Error("nothing was compared")
	}
}

// excuses are why a plugin's scores for a pod may differ.
func excuses(pod *corev1.Pod) map[string]string {
	if pod.Spec.Resources == nil {
		return nil
	}
	return map[string]string{"NodeResourcesFit": "upstream's scorer leaves the requests of the pod itself out of account (its NewFit does not pass the feature on)"}
}

// withoutScores forgets the scores by a plugin, and tells whether there were any.
func (o opinion) withoutScores(plugin string) (had bool) {
	for _, node := range o.nodes {
		_, has := node.scores[plugin]
		had = had || has
		delete(node.scores, plugin)
	}
	return had
}

func (o opinion) refusals() (n int) {
	for _, node := range o.nodes {
		n += len(node.refusals)
	}
	return n
}

func (o opinion) preferences() (n int) {
	for _, node := range o.nodes {
		n += len(node.scores)
	}
	return n
}

// differences are written one a node and plugin.
func differences(ours, theirs opinion) (all []string) {
	if ours.refusal != "" || theirs.refusal != "" {
		if ours.refusal != theirs.refusal {
			all = append(all, fmt.Sprintf("the pod: we say %q, upstream %q", ours.refusal, theirs.refusal))
		}
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(theirs.nodes)) {
		all = append(all, differing(name+" refused", ours.nodes[name].refusals, theirs.nodes[name].refusals)...)
	}
	if len(all) > 0 {
		return all // scores are of the nodes that fit
	}
	for _, name := range slices.Sorted(maps.Keys(theirs.nodes)) {
		all = append(all, differing(name+" scored", ours.nodes[name].scores, theirs.nodes[name].scores)...)
	}
	return all
}

// differing names the plugins that do not say the same.
func differing[V comparable](node string, ours, theirs map[string]V) (all []string) {
	both := map[string]bool{}
	for name := range ours {
		both[name] = true
	}
	for name := range theirs {
		both[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if a, b := ours[name], theirs[name]; a != b {
			all = append(all, fmt.Sprintf("%s by %s: we say %#v, upstream %#v", node, name, a, b))
		}
	}
	return all
}

// relative makes scores relative to the worst of the nodes for each plugin: the same for all says nothing.
func (o opinion) relative() opinion {
	least := map[string]int64{}
	for _, node := range o.nodes {
		for name, score := range node.scores {
			if known, ok := least[name]; !ok || score < known {
				least[name] = score
			}
		}
	}
	for _, node := range o.nodes {
		for name := range node.scores {
			node.scores[name] -= least[name]
		}
		maps.DeleteFunc(node.scores, func(_ string, score int64) bool { return score == 0 })
	}
	return o
}

// judges are both sides over the objects of a world.
func judges(t *testing.T, w *placement) (ours, theirs func(*corev1.Pod) opinion) {
	factory := informed(t, w, func(ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory) {
		theirs = upstreamJudge(ctx, t, w, client, factory)
	})
	return ourJudge(t, factory), theirs
}

// informed are informers of a world, of what our scheduler reads and what prepare, which is called before they start, asks for.
func informed(
	t *testing.T, w *placement, prepare func(context.Context, *fake.Clientset, informers.SharedInformerFactory),
) informers.SharedInformerFactory {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewSimpleClientset(w.objects()...)
	factory := informers.NewSharedInformerFactory(client, 0)
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	for _, read := range scheduler.Reads(func(schema.GroupVersionResource) bool { return true }) {
		informer, err := factory.ForResource(read.Declaration().Resource)
		if err != nil {
			t.Fatal(err)
		}
		informer.Informer()
	}
	prepare(ctx, client, factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	synctest.Wait()
	return factory
}

func ourJudge(t *testing.T, factory informers.SharedInformerFactory) func(*corev1.Pod) opinion {
	judge := scheduler.NewJudge(scheduler.Config{Informers: factory})
	return func(pod *corev1.Pod) opinion {
		judged, err := judge.Pod(pod)
		if err != nil {
			t.Fatal(err)
		}
		o := opinion{refusal: judged.Refusal, nodes: map[string]nodeOpinion{}}
		for _, verdict := range judged.Nodes {
			refusals := map[string]string{}
			for _, r := range verdict.Rejections {
				refusals[r.Plugin] = sorted(r.Reasons)
			}
			o.nodes[verdict.Node.Name] = nodeOpinion{refusals, maps.Clone(verdict.Scores)}
		}
		return o.relative()
	}
}

// upstreamSide has upstream's plugins of the default profile, in their order, and the framework that they are in.
type upstreamSide struct {
	plugins    []fwk.Plugin
	weights    map[string]int64
	nodes      []fwk.NodeInfo
	framework  framework.Framework
	preemption *defaultpreemption.DefaultPreemption
}

func upstreamJudge(ctx context.Context, t *testing.T, w *placement, client *fake.Clientset, factory informers.SharedInformerFactory) func(*corev1.Pod) opinion {
	side := newUpstreamSide(ctx, t, w, client, factory)
	return func(pod *corev1.Pod) opinion { return side.judge(ctx, t, pod).relative() }
}

func newUpstreamSide(ctx context.Context, t *testing.T, w *placement, client *fake.Clientset, factory informers.SharedInformerFactory) *upstreamSide {
	snapshot := cache.NewSnapshot(w.placed, w.nodes)
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile, side := &defaults.Profiles[0], &upstreamSide{weights: map[string]int64{}, nodes: nodes}
	side.framework, err = frameworkruntime.NewFramework(ctx, side.registry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithMutableSnapshotLister(snapshot),
		frameworkruntime.WithPodNominator(noNominations{}),
		frameworkruntime.WithSharedDRAManager(devicesOf(ctx, t, client, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
	)
	if err != nil {
		t.Fatal(err)
	}
	side.order(profile.Plugins.MultiPoint.Enabled)
	return side
}

// notAsked are no filters and no scores, or need what these worlds do not have.
var notAsked = []string{"DefaultBinder", "PrioritySort", "SchedulingGates", "DeferredPodScheduling"}

// registry is upstream's; it tells the side which plugins it makes.
func (s *upstreamSide) registry() frameworkruntime.Registry {
	registry := upstreamplugins.NewInTreeRegistry()
	for name, factory := range registry {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			p, err := factory(ctx, args, handle)
			if preempts, is := p.(*defaultpreemption.DefaultPreemption); is {
				s.preemption = preempts
			} else if err == nil && !slices.Contains(notAsked, name) {
				s.plugins = append(s.plugins, p)
			}
			return p, err
		}
	}
	return registry
}

func (s *upstreamSide) order(enabled []config.Plugin) {
	rank := map[string]int{}
	for i, p := range enabled {
		rank[p.Name], s.weights[p.Name] = i, int64(max(p.Weight, 1))
	}
	slices.SortFunc(s.plugins, func(a, b fwk.Plugin) int { return rank[a.Name()] - rank[b.Name()] })
}

func (s *upstreamSide) judge(ctx context.Context, t *testing.T, pod *corev1.Pod) opinion {
	o, state := opinion{nodes: map[string]nodeOpinion{}}, framework.NewCycleState()
	for _, node := range s.nodes {
		o.nodes[node.Node().Name] = nodeOpinion{map[string]string{}, map[string]int64{}}
	}
	for _, p := range s.plugins {
		among, skip, refusal := s.preFilter(ctx, t, p, state, pod)
		if refusal != "" {
			return opinion{refusal: refusal}
		}
		filter, filters := p.(fwk.FilterPlugin)
		for _, node := range s.nodes {
			name := node.Node().Name
			if !among.AllNodes() && !among.NodeNames.Has(name) {
				o.nodes[name].refusals[p.Name()] = notNamed
			} else if filters && !skip {
				if status := filter.Filter(ctx, state, pod, node); !status.IsSuccess() {
					o.nodes[name].refusals[p.Name()] = sorted(status.Reasons())
				}
			}
		}
	}
	s.score(ctx, t, state, pod, o)
	return o
}

// sorted joins reasons: those about extended resources come in any order.
func sorted(reasons []string) string {
	return strings.Join(slices.Sorted(slices.Values(reasons)), ", ")
}

// notNamed is what NodeAffinity says of a node that a pod which names nodes does not name.
const notNamed = "node(s) didn't match Pod's node affinity/selector"

func (s *upstreamSide) preFilter(
	ctx context.Context, t *testing.T, p fwk.Plugin, state fwk.CycleState, pod *corev1.Pod,
) (among *fwk.PreFilterResult, skip bool, refusal string) {
	pre, ok := p.(fwk.PreFilterPlugin)
	if !ok {
		return nil, false, ""
	}
	among, status := pre.PreFilter(ctx, state, pod, s.nodes)
	switch {
	case status.IsSkip():
		return nil, true, ""
	case status.IsRejected():
		return nil, false, strings.Join(status.Reasons(), ", ")
	case !status.IsSuccess():
		t.Fatal(p.Name(), status)
	}
	return among, false, ""
}

func (s *upstreamSide) score(ctx context.Context, t *testing.T, state fwk.CycleState, pod *corev1.Pod, o opinion) {
	fitting := slices.DeleteFunc(slices.Clone(s.nodes), func(node fwk.NodeInfo) bool { return len(o.nodes[node.Node().Name].refusals) > 0 })
	if len(fitting) == 0 {
		return
	}
	for _, p := range s.plugins {
		scorer, ok := p.(fwk.ScorePlugin)
		if pre, has := p.(fwk.PreScorePlugin); ok && has {
			status := pre.PreScore(ctx, state, pod, fitting)
			if !status.IsSuccess() && !status.IsSkip() {
				t.Fatal(p.Name(), status)
			}
			ok = !status.IsSkip()
		}
		if !ok {
			continue
		}
		scores, err := scoresOf(ctx, scorer, state, pod, fitting)
		if err != nil {
			t.Fatal(p.Name(), err)
		}
		for _, score := range scores {
			o.nodes[score.Name].scores[p.Name()] = score.Score * s.weights[p.Name()]
		}
	}
}

func scoresOf(ctx context.Context, p fwk.ScorePlugin, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (fwk.NodeScoreList, error) {
	var scores fwk.NodeScoreList
	for _, node := range nodes {
		score, status := p.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		scores = append(scores, fwk.NodeScore{Name: node.Node().Name, Score: score})
	}
	if extensions := p.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
			return nil, errors.New(status.Message())
		}
	}
	return scores, nil
}
