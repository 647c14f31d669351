package scheduler

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/owners"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// Judgement is what the scheduler's own plugins say of a pod, on what the caches hold.
type Judgement struct {
	// Foreign tells that no profile has the pod's schedulerName; nothing else was looked at then.
	Foreign bool
	// Refusal is a reason that no node can lift, such as a claim that is missing; the nodes were not looked at then.
	Refusal string
	// Nodes has a verdict for every node, by slot; a node without rejections fits.
	Nodes []NodeVerdict
	// Plugins are the names of those that had an opinion about the pod.
	Plugins []string
	// Message is that of the pod's condition, Hint the smallest change in one sentence. Both are empty if the pod fits.
	Message, Hint string
}

// NodeVerdict is what all plugins say of one node.
type NodeVerdict struct {
	Node       *corev1.Node
	Rejections []NamedRejection
	// FreeMilliCPU and FreeMemory (bytes) are what no pod has requested.
	FreeMilliCPU, FreeMemory int64
	// Scores are those of a node that fits, by plugin and with its weight; a plugin without a preference has none.
	Scores map[string]int64
}

// NamedRejection is a rejection and whose it is.
type NamedRejection struct {
	Plugin string
	*plugin.Rejection
}

// A Judge asks all plugins of pods' profiles about every node. It reads the Config's Informers and changes nothing, so any server may
// have one, whether it leads or not. Only the leader knows which pods and volumes it has promised room and not yet bound.
// What it has parsed of the placed pods it keeps for the next question, so the first takes longer. It is safe for
// concurrent use.
type Judge struct {
	config   Config
	profiles map[string]*profile.Profile // by schedulerName

	mu    sync.Mutex // guards the rest; held during a question
	cache *cache
	seen  map[types.UID]*corev1.Pod // the versions that cache has; not more than there are pods
}

// NewJudge returns a Judge over the Informers, Serves and Profiles of the Config, which needs nothing else.
func NewJudge(cfg Config) *Judge {
	j := &Judge{config: cfg, profiles: map[string]*profile.Profile{}, cache: newCache(), seen: map[types.UID]*corev1.Pod{}}
	for _, p := range cfg.Profiles.Or(profile.Default()).Profiles {
		j.profiles[p.Name] = &p
	}
	return j
}

// Pod judges one pod.
func (j *Judge) Pod(pod *corev1.Pod) (Judgement, error) {
	by := j.profiles[cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)]
	if by == nil {
		return Judgement{Foreign: true}, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	q, err := j.ask(pod, by)
	if err != nil {
		return Judgement{}, err
	}
	if q.refused != nil {
		return Judgement{Refusal: q.refused.Refusal, Message: q.refused.Error()}, nil
	}
	e, class := q.engine, q.class
	defer e.reset()
	judged := Judgement{Plugins: class.names()}
	var fitting []*plugin.Node
	for _, node := range j.cache.nodes {
		if node != nil && node.Node != nil {
			verdict := class.nodeVerdict(node)
			if len(verdict.Rejections) == 0 {
				fitting = append(fitting, node)
			}
			judged.Nodes = append(judged.Nodes, verdict)
		}
	}
	judged.score(e, class, fitting)
	if len(fitting) == 0 {
		fit := e.diagnose(q.pod, class).told()
		judged.Message, judged.Hint = fit.Error(), fit.Hint
	}
	return judged, nil
}

// question is a pod that the plugins of its profile are asked about.
type question struct {
	pod     *plugin.Pod
	engine  *engine // to be reset after the question
	class   *class
	refused *FitError // a reason that no node can lift; there is no engine then
}

// ask begins a question on what the informers hold now. Its caller holds mu.
func (j *Judge) ask(pod *corev1.Pod, by *profile.Profile) (question, error) {
	if err := j.catchUp(); err != nil {
		return question{}, err
	}
	p := plugin.NewPod(pod)
	var err error
	if p.Needs, err = newClaims(j.config).needs(pod); err != nil && j.cache.known > 0 {
		return question{refused: &FitError{Nodes: j.cache.known, Refusal: err.Error()}}, nil
	}
	e := newEngine(j.cache, by)
	class := e.class(p, podkey.Of(pod), owners.New(j.config.Informers, j.config.serves).Selector(pod))
	return question{pod: p, engine: e, class: class}, nil
}

// score fills in the scores of the nodes that fit.
func (j *Judgement) score(e *engine, c *class, fitting []*plugin.Node) {
	e.score(c, fitting, func(p plugin.Plugin, weight int64, scores []int64) {
		next := 0
		for i := range j.Nodes {
			if v := &j.Nodes[i]; len(v.Rejections) == 0 {
				if v.Scores == nil {
					v.Scores = map[string]int64{}
				}
				v.Scores[p.Name()] = weight * scores[next]
				next++
			}
		}
	})
}

// catchUp brings the cache to what the informers hold, as watch does for that of a term. An informer's object that is the same
// as before has not changed.
func (j *Judge) catchUp() error {
	core := j.config.Informers.Core().V1()
	nodes, nodesErr := core.Nodes().Lister().List(labels.Everything())
	namespaces, namespacesErr := core.Namespaces().Lister().List(labels.Everything())
	pods, podsErr := core.Pods().Lister().List(labels.Everything())
	j.setNodes(nodes)
	for _, namespace := range namespaces {
		j.cache.setNamespace(namespace.Name, labels.Set(namespace.Labels))
	}
	j.setPods(pods)
	return errors.Join(nodesErr, namespacesErr, podsErr)
}

func (j *Judge) setNodes(nodes []*corev1.Node) {
	there := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		there[node.Name] = true
		if slot, known := j.cache.slots[node.Name]; !known || j.cache.nodes[slot].Node != node {
			j.cache.setNode(node)
		}
	}
	for _, node := range slices.Clone(j.cache.nodes) {
		if node != nil && !there[node.Name] {
			j.cache.removeNode(node.Name)
		}
	}
}

func (j *Judge) setPods(pods []*corev1.Pod) {
	placed := make(map[types.UID]*corev1.Pod, len(pods))
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			placed[pod.UID] = pod
		}
	}
	for uid := range j.seen {
		if placed[uid] == nil {
			j.cache.removePod(uid)
		}
	}
	for uid, pod := range placed {
		if j.seen[uid] != pod {
			j.cache.setPod(pod)
		}
	}
	j.seen = placed
}

// names are those of the plugins that reject nodes for pods of the class.
func (c *class) names() []string {
	var names []string
	for _, f := range c.shape.filters {
		names = append(names, f.plugin.Name())
	}
	for _, s := range c.surveyFilters {
		names = append(names, s.plugin.Name())
	}
	return names
}

func (c *class) nodeVerdict(node *plugin.Node) NodeVerdict {
	return NodeVerdict{
		Node: node.Node, Rejections: c.rejections(node),
		FreeMilliCPU: node.Allocatable.MilliCPU - node.Requested.MilliCPU,
		FreeMemory:   node.Allocatable.Memory - node.Requested.Memory,
	}
}
