package volumeattach

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// model is what the test knows of a generated world: where pods are, and what their nodes have mounted.
type model struct {
	*world
	random *rand.Rand
	nodes  []string
	pods   map[string][]string        // the volumes of each pod
	at     map[string]string          // its node
	mounts map[string]map[string]bool // the volumes that each node has mounted
	made   int
}

var volumesOfWorlds = map[string]corev1.PersistentVolumeAccessMode{
	"once1": corev1.ReadWriteOnce, "once2": corev1.ReadWriteOnce, "pod": corev1.ReadWriteOncePod, "many": corev1.ReadWriteMany,
}

// TestWorlds: whatever the order of events, an exclusive volume is on one node at a time, nothing mounted is detached, and in the
// end exactly what pods use is attached.
func TestWorlds(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				m := &model{
					world: w, random: rand.New(rand.NewPCG(seed, 1)), nodes: []string{"a", "b", "c"},
					pods: map[string][]string{}, at: map[string]string{}, mounts: map[string]map[string]bool{},
				}
				for _, n := range m.nodes {
					reconciletest.Add(w.World, newNode(n))
					m.mounts[n] = map[string]bool{}
				}
				for v, mode := range volumesOfWorlds {
					w.addVolume(v, mode)
				}
				for range 60 {
					m.step()
					m.check()
				}
				m.finish()
			})
		})
	}
}

// step lets one thing happen.
func (m *model) step() {
	switch m.random.IntN(6) {
	case 0, 1:
		m.made++
		name, node := fmt.Sprint("p", m.made), m.nodes[m.random.IntN(len(m.nodes))]
		var volumes []string
		for v := range volumesOfWorlds {
			volumes = append(volumes, v)
		}
		slices.Sort(volumes)
		m.random.Shuffle(len(volumes), func(i, j int) { volumes[i], volumes[j] = volumes[j], volumes[i] })
		volumes = volumes[:1+m.random.IntN(2)]
		m.pods[name], m.at[name] = volumes, node
		reconciletest.Add(m.World, newPod(name, node, volumes...))
	case 2:
		for _, name := range m.names() {
			m.end(name)
			break
		}
	case 3:
		m.attacher()
	case 4:
		m.kubelets()
	default:
		m.wait(m.random.IntN(3))
	}
}

func (m *model) wait(rounds int) {
	for range rounds {
		m.Settle()
		m.pass(time.Second)
	}
}

func (m *model) names() []string {
	var names []string
	for name := range m.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (m *model) end(name string) {
	m.removePod(name)
	delete(m.pods, name)
	delete(m.at, name)
}

// kubelets mount what is reported as attached and used by a pod, and unmount what no pod uses.
func (m *model) kubelets() {
	for _, n := range m.nodes {
		was := m.mounts[n]
		m.changeStatus(n, func(node *corev1.Node) { m.kubelet(node, was) })
	}
}

func (m *model) kubelet(node *corev1.Node, was map[string]bool) {
	var reported []corev1.UniqueVolumeName
	for _, v := range node.Status.VolumesAttached {
		reported = append(reported, v.Name)
	}
	is := map[string]bool{}
	node.Status.VolumesInUse = nil
	for v := range volumesOfWorlds {
		used := slices.ContainsFunc(m.names(), func(p string) bool { return m.at[p] == node.Name && slices.Contains(m.pods[p], v) })
		if used && (was[v] || slices.Contains(reported, titleOf(v))) {
			is[v] = true
			node.Status.VolumesInUse = append(node.Status.VolumesInUse, titleOf(v))
		}
	}
	slices.Sort(node.Status.VolumesInUse)
	m.mounts[node.Name] = is
}

// check looks at what must hold at any time.
func (m *model) check() {
	m.t.Helper()
	list, err := m.Client.StorageV1().VolumeAttachments().List(m.t.Context(), metav1.ListOptions{})
	m.must(err)
	on := map[string][]string{}
	for _, a := range list.Items {
		v := *a.Spec.Source.PersistentVolumeName
		on[v] = append(on[v], a.Spec.NodeName)
		if a.DeletionTimestamp != nil && m.mounts[a.Spec.NodeName][v] {
			m.t.Fatalf("%s is detached from %s, which has mounted it", v, a.Spec.NodeName)
		}
	}
	for v, nodes := range on {
		if len(nodes) > 1 && volumesOfWorlds[v] != corev1.ReadWriteMany {
			m.t.Fatalf("%s is attached to %v", v, nodes)
		}
	}
}

// finish lets the attacher and the kubelets do their work, then ends all pods.
func (m *model) finish() {
	m.t.Helper()
	calm := func() {
		for range 12 {
			m.Settle()
			m.attacher()
			m.Settle()
			m.kubelets()
			m.check()
		}
		m.Settle()
	}
	calm()
	has := strings.Fields(m.all())
	for v, mode := range volumesOfWorlds {
		wanted := map[string]bool{}
		for p, volumes := range m.pods {
			if slices.Contains(volumes, v) {
				wanted[v+"@"+m.at[p]+"+"] = true
			}
		}
		got := slices.DeleteFunc(slices.Clone(has), func(x string) bool { return !strings.HasPrefix(x, v+"@") })
		if slices.ContainsFunc(got, func(x string) bool { return !wanted[x] }) ||
			mode == corev1.ReadWriteMany && len(got) != len(wanted) || len(got) != min(len(got), len(wanted)) || len(wanted) > 0 && len(got) == 0 {
			m.t.Errorf("%s: %v, wanted %v", v, got, wanted)
		}
	}
	for _, name := range m.names() {
		m.end(name)
	}
	calm()
	if got := m.all(); got != "" {
		m.t.Errorf("nobody uses %s", got)
	}
	m.quiet()
}
