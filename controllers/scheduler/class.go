package scheduler

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// class is what identical pods share: the plugins prepared for them and each node's verdict, kept until the node's
// generation changes.
type class struct {
	pod     *plugin.Pod // any pod of the class
	filters []preparedFilter
	scores  []preparedScore
	surveys []plugin.Survey
	// Of surveys, those that the profile wants to filter, and to score.
	surveyFilters, surveyScores []preparedSurvey

	verdicts []verdict // by slot
	raw      []int64   // raw scores, len(scores) for each slot
	pinned   map[string]bool
	used     uint64 // engine round of the last use, for eviction

	failure  *FitError // the last failure, good while the cache's generation is failedAt
	failedAt uint64
}

type preparedFilter struct {
	plugin plugin.Filter
	judge  func(*plugin.Node) *plugin.Rejection
}

type preparedScore struct {
	plugin plugin.Score
	weight int64
	score  func(*plugin.Node) int64
}

type preparedSurvey struct {
	plugin plugin.Surveyor
	weight int64
	survey plugin.Survey
}

// verdict is what the filters said about one node at one generation.
type verdict struct {
	generation uint64 // 0: never looked at, or gone
	rejection  *plugin.Rejection
	wakes      plugin.Event // of the plugin that rejected
}

func newClass(pod *plugin.Pod, list []profile.Plugin, world plugin.World) *class {
	c := &class{pod: pod}
	for _, p := range list {
		if f, ok := p.Plugin.(plugin.Filter); ok && p.Filters {
			if judge := f.Filter(pod); judge != nil {
				c.filters = append(c.filters, preparedFilter{f, judge})
			}
		}
		if s, ok := p.Plugin.(plugin.Score); ok && p.Scores {
			if score := s.Score(pod); score != nil {
				c.scores = append(c.scores, preparedScore{s, p.Weight, score})
			}
		}
		if s, ok := p.Plugin.(plugin.Surveyor); ok {
			c.addSurvey(p, preparedSurvey{s, p.Weight, s.Survey(pod, world)})
		}
	}
	if names := pod.PinnedTo(); names != nil {
		c.pinned = make(map[string]bool, len(names))
		for _, name := range names {
			c.pinned[name] = true
		}
	}
	return c
}

func (c *class) addSurvey(p profile.Plugin, s preparedSurvey) {
	if s.survey == nil {
		return
	}
	c.surveys = append(c.surveys, s.survey)
	if p.Filters {
		c.surveyFilters = append(c.surveyFilters, s)
	}
	if p.Scores {
		c.surveyScores = append(c.surveyScores, s)
	}
}

// refresh looks again at the nodes that changed since the last pod of the class.
func (c *class) refresh(nodes []*plugin.Node) {
	for len(c.verdicts) < len(nodes) {
		c.verdicts = append(c.verdicts, verdict{})
		c.raw = append(c.raw, make([]int64, len(c.scores))...)
	}
	for slot, node := range nodes {
		if node == nil || node.Node == nil {
			c.vacate(slot)
		} else if c.verdicts[slot].generation != node.Generation {
			c.judge(slot, node)
		}
	}
}

func (c *class) vacate(slot int) {
	if c.verdicts[slot].generation == 0 {
		return
	}
	c.verdicts[slot] = verdict{}
	for _, s := range c.surveys {
		s.Observe(slot, nil)
	}
}

func (c *class) judge(slot int, node *plugin.Node) {
	for _, s := range c.surveys {
		s.Observe(slot, node)
	}
	v := verdict{generation: node.Generation}
	if c.pinned == nil || c.pinned[node.Name] {
		v.rejection, v.wakes = c.filter(node)
	}
	c.verdicts[slot] = v
	if v.rejection != nil {
		return
	}
	raw := c.raw[slot*len(c.scores):]
	for i, s := range c.scores {
		raw[i] = s.score(node)
	}
}

func (c *class) filter(node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	for _, f := range c.filters {
		if r := f.judge(node); r != nil {
			return r, f.plugin.Wakes()
		}
	}
	return nil, 0
}

// verdict gives the whole answer for a node, surveys included.
func (c *class) verdict(node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	if v := &c.verdicts[node.Slot]; v.rejection != nil {
		return v.rejection, v.wakes
	}
	for _, s := range c.surveyFilters {
		if r := s.survey.Filter(node); r != nil {
			return r, s.plugin.Wakes()
		}
	}
	return nil, 0
}

// rejections asks every plugin about the node, not only until the first says no.
func (c *class) rejections(node *plugin.Node) []NamedRejection {
	var all []NamedRejection
	for _, f := range c.filters {
		if r := f.judge(node); r != nil {
			all = append(all, NamedRejection{f.plugin.Name(), r})
		}
	}
	for _, s := range c.surveyFilters {
		if r := s.survey.Filter(node); r != nil {
			all = append(all, NamedRejection{s.plugin.Name(), r})
		}
	}
	return all
}

// classKey is everything of a pod that any plugin looks at; pods with equal keys are interchangeable as long as their
// claims need the same (plugin.Needs). Of the volumes only disks and images are in it: the token volume has a random name in every pod.
type classKey struct {
	Namespace    string
	Labels       map[string]string
	Owner        types.UID
	NodeName     string
	NodeSelector map[string]string
	Affinity     *corev1.Affinity
	Tolerations  []corev1.Toleration
	Spread       []corev1.TopologySpreadConstraint
	Overhead     corev1.ResourceList
	Resources    *corev1.ResourceRequirements
	Init         []containerKey
	Containers   []containerKey
	Devices      []corev1.PodResourceClaimStatus
	Disks        []*corev1.Volume
	Images       []string
	Features     string
}

type containerKey struct {
	Image     string
	Requests  corev1.ResourceList
	Ports     []corev1.ContainerPort
	Restarted *corev1.ContainerRestartPolicy
}

// keyOf gives the class key in a comparable form.
func keyOf(pod *corev1.Pod) string {
	key := classKey{
		Namespace: pod.Namespace, Labels: pod.Labels, NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector,
		Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations, Spread: pod.Spec.TopologySpreadConstraints,
		Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
		Init: containerKeys(pod.Spec.InitContainers), Containers: containerKeys(pod.Spec.Containers),
		Devices: pod.Status.ResourceClaimStatuses, Disks: plugins.DisksOf(pod), Images: plugins.ImageVolumes(pod),
		Features: plugins.FeaturesOf(pod).String(),
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		key.Owner = owner.UID
	}
	text, err := json.Marshal(key)
	if err != nil {
		return "pod " + string(pod.UID) // cannot happen for API types; such a pod is a class of its own
	}
	return string(text)
}

func containerKeys(containers []corev1.Container) []containerKey {
	keys := make([]containerKey, len(containers))
	for i := range containers {
		c := &containers[i]
		keys[i] = containerKey{c.Image, c.Resources.Requests, c.Ports, c.RestartPolicy}
	}
	return keys
}
