package scheduler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// changesKept is how many changes of nodes are remembered; who looked last before that looks at all nodes.
const changesKept = 4096

// cache is the scheduler's table of nodes and of the pods placed on them, assumed ones included. It is guarded by
// scheduler.mu. Every change a plugin could notice gives the node a new generation.
type cache struct {
	nodes        []*plugin.Node // by slot; nil where a node was removed
	slots        map[string]int // by node name
	free         []int          // slots to use again
	pods         map[types.UID]*placement
	namespaces   map[string]labels.Set
	generation   uint64        // the last one given; also tells whether anything changed at all
	known        int           // nodes whose object has been seen
	affinityPods int           // placed pods with affinity or anti-affinity terms
	priorities   map[int32]int // how many placed pods have a priority
	nominations  map[types.UID]*nomination
	promised     map[string]map[types.UID]*nomination // the same, by node
	views        *views.Views
	changes      [changesKept]int32 // by generation, modulo its length: the slot that changed
	evicting     map[types.UID]bool // placed pods that are being evicted for others
}

// placement is a pod that counts on a node.
type placement struct {
	pod  *plugin.Pod
	node *plugin.Node
	// assumed: decided here, not yet confirmed by the watch.
	assumed bool
}

func newCache() *cache {
	c := &cache{
		slots: map[string]int{}, pods: map[types.UID]*placement{}, namespaces: map[string]labels.Set{},
		priorities: map[int32]int{}, nominations: map[types.UID]*nomination{}, evicting: map[types.UID]bool{},
		promised: map[string]map[types.UID]*nomination{},
	}
	c.views = views.New(c.namespaceLabels)
	return c
}

// setNode takes over a node object and tells what changed.
func (c *cache) setNode(object *corev1.Node) plugin.Event {
	node := c.node(object.Name)
	old := node.Node
	if old == nil {
		c.known++
		c.replaceNode(node, object)
		return plugin.NodeAdded
	}
	changed := nodeChanges(old, object)
	if changed == 0 && sameImages(old, object) {
		node.Node = object
		return 0
	}
	c.replaceNode(node, object)
	return changed
}

func (c *cache) replaceNode(node *plugin.Node, object *corev1.Node) {
	node.SetNode(object)
	c.views.SetNode(node.Slot, object)
	c.touch(node)
}

func nodeChanges(old, object *corev1.Node) plugin.Event {
	var changed plugin.Event
	if !maps.Equal(old.Labels, object.Labels) {
		changed |= plugin.NodeLabels
	}
	if old.Spec.Unschedulable != object.Spec.Unschedulable || !equality.Semantic.DeepEqual(old.Spec.Taints, object.Spec.Taints) {
		changed |= plugin.NodeTaints
	}
	if !plugin.NewResources(old.Status.Allocatable).Equal(plugin.NewResources(object.Status.Allocatable)) {
		changed |= plugin.NodeAllocatable
	}
	if !slices.Equal(old.Status.DeclaredFeatures, object.Status.DeclaredFeatures) {
		changed |= plugin.NodeFeatures
	}
	return changed
}

func sameImages(old, object *corev1.Node) bool {
	if len(old.Status.Images) != len(object.Status.Images) {
		return false
	}
	return equality.Semantic.DeepEqual(old.Status.Images, object.Status.Images)
}

// removeNode forgets the node object; the entry stays while pods still name it.
func (c *cache) removeNode(name string) plugin.Event {
	slot, ok := c.slots[name]
	if !ok || c.nodes[slot].Node == nil {
		return 0
	}
	node := c.nodes[slot]
	node.Node = nil
	c.views.SetNode(slot, nil)
	c.known--
	c.touch(node)
	c.release(node)
	return plugin.NodeGone
}

// setPod takes over a pod that names its node, confirming an assumption, and tells what changed for other pods.
func (c *cache) setPod(object *corev1.Pod) plugin.Event {
	pod := plugin.NewPod(object)
	old := c.pods[object.UID]
	if old == nil {
		c.place(pod, c.node(object.Spec.NodeName), false)
		return plugin.PodBound
	}
	old.assumed = false
	if old.node.Name == object.Spec.NodeName && old.pod.SameForOthers(pod) {
		old.node.ReplacePod(old.pod, pod)
		old.pod = pod
		return 0
	}
	changed := plugin.PodLabels
	if pod.Requests.Within(old.pod.Requests) {
		changed |= plugin.PodShrunk
	}
	if old.node.Name != object.Spec.NodeName {
		changed = plugin.PodBound | plugin.PodGone
	}
	c.removePod(object.UID)
	c.place(pod, c.node(object.Spec.NodeName), false)
	return changed
}

// assume counts the pod on the node it is about to be bound to.
func (c *cache) assume(pod *plugin.Pod, node *plugin.Node) {
	c.place(pod, node, true)
}

// forget takes back an assumption that has not been confirmed meanwhile.
func (c *cache) forget(uid types.UID) plugin.Event {
	if p := c.pods[uid]; p == nil || !p.assumed {
		return 0
	}
	return c.removePod(uid)
}

// placed tells whether the pod counts on a node already.
func (c *cache) placed(uid types.UID) bool {
	return c.pods[uid] != nil
}

func (c *cache) place(pod *plugin.Pod, node *plugin.Node, assumed bool) {
	node.AddPod(pod)
	c.views.Add(node.Slot, pod.Member)
	c.priorities[pod.Priority()]++
	c.pods[pod.UID] = &placement{pod: pod, node: node, assumed: assumed}
	if !pod.Affinity.Empty() {
		c.affinityPods++
	}
	c.touch(node)
}

// removePod takes the pod off its node, whether assumed or confirmed.
func (c *cache) removePod(uid types.UID) plugin.Event {
	p := c.pods[uid]
	if p == nil {
		return 0
	}
	delete(c.pods, uid)
	delete(c.evicting, uid)
	if c.priorities[p.pod.Priority()]--; c.priorities[p.pod.Priority()] == 0 {
		delete(c.priorities, p.pod.Priority())
	}
	p.node.RemovePod(p.pod)
	c.views.Remove(p.node.Slot, p.pod.Member)
	if !p.pod.Affinity.Empty() {
		c.affinityPods--
	}
	c.touch(p.node)
	c.release(p.node)
	return plugin.PodGone
}

// node finds or makes the entry of a node.
func (c *cache) node(name string) *plugin.Node {
	if slot, ok := c.slots[name]; ok {
		return c.nodes[slot]
	}
	slot := len(c.nodes)
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.nodes = append(c.nodes, nil)
	}
	node := plugin.NewNode(name, slot)
	c.nodes[slot], c.slots[name] = node, slot
	return node
}

// release frees the entry of a node that neither exists nor holds pods.
func (c *cache) release(node *plugin.Node) {
	if node.Node != nil || len(node.Pods) > 0 {
		return
	}
	c.nodes[node.Slot] = nil
	c.free = append(c.free, node.Slot)
	delete(c.slots, node.Name)
}

func (c *cache) touch(node *plugin.Node) {
	c.changed(node.Slot)
	node.Generation = c.generation
}

// changed notes that what was said of a node may be wrong now.
func (c *cache) changed(slot int) {
	c.generation++
	c.changes[c.generation%changesKept] = int32(slot)
}

// changedSince lists the slots that changed after a generation, some of them more than once; false: it was too long ago.
func (c *cache) changedSince(generation uint64) (slots []int32, known bool) {
	n := c.generation - generation
	if n > changesKept {
		return nil, false
	}
	for g := generation + 1; g <= c.generation; g++ {
		slots = append(slots, c.changes[g%changesKept])
	}
	return slots, true
}

// setNamespace keeps a namespace's labels. It tells whether they changed, and whether all classes must go because they counted
// pods by the old ones.
func (c *cache) setNamespace(name string, set labels.Set) (changed, stale bool) {
	old, ok := c.namespaces[name]
	c.namespaces[name] = set
	if changed = !ok && len(set) > 0 || !maps.Equal(old, set); changed {
		c.generation += changesKept + 1 // what failed before is looked at on all nodes
		stale = c.views.NamespaceChanged()
	}
	return changed, stale
}

func (c *cache) namespaceLabels(name string) labels.Set {
	return c.namespaces[name]
}
