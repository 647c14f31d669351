package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/server/liveness"
)

// death is that of a node, and when each of its steps was seen.
type death struct {
	*testing.T
	c     *Cluster
	m     *Machine
	start time.Time
	told  []string
}

// saw notes a step.
func (d *death) saw(step string) {
	d.told = append(d.told, fmt.Sprintf("%d. %s after %v", len(d.told)+1, step, time.Since(d.start).Round(100*time.Millisecond)))
}

// nodeDies turns off a machine that does not lead, and then on again: gossip suspects its node, the node is tainted, its pods stay
// for as long as they tolerate that, are evicted and replaced, and what is back gets nothing that it had.
func (c *Cluster) nodeDies(t *testing.T) {
	leader := c.leader(t)
	m := c.Machines[slices.IndexFunc(c.Machines, func(m *Machine) bool { return m != leader })]
	Until(t, patience, func(context.Context) string { return c.placedOn(m) })
	d := &death{T: t, c: c, m: m, start: time.Now()}
	if err := m.PowerOff(); err != nil {
		t.Fatal(err)
	}
	d.saw("the machine stops")
	Until(t, patience, func(context.Context) string { return d.suspected(leader) })
	d.saw("gossip suspects its node")
	Until(t, patience, d.tainted)
	d.saw("the node is tainted")
	evicted := d.evicted()
	replaced := c.elsewhere(t, m)
	d.saw("others take their place")
	if err := m.PowerOn(); err != nil {
		t.Fatal(err)
	}
	Until(t, patience, c.nodesNotReady)
	Until(t, patience, func(context.Context) string { return d.left(evicted) })
	d.saw("the node is back, without the pods that it had")
	if now := c.elsewhere(t, m); !slices.Equal(replaced, now) {
		t.Errorf("the pods elsewhere were %v and are %v: what came back moved them", replaced, now)
	}
	t.Logf("the death of a node:\n%s", strings.Join(d.told, "\n"))
	if len(d.told) != 7 {
		t.Errorf("%d steps", len(d.told))
	}
}

// placedOn says that the machine's node has no ready pod of web, and moves one there: it deletes one of those elsewhere.
func (c *Cluster) placedOn(m *Machine) string {
	pods, err := c.pods("web")
	if err != nil {
		return err.Error()
	}
	if readyElsewhere(pods, "")-readyElsewhere(pods, m.Node) > 0 {
		return ""
	}
	for i := range pods {
		if podReady(&pods[i]) && readyElsewhere(pods, "") == 3 {
			_, err := Ask(c, func(client kubernetes.Interface) (struct{}, error) {
				return struct{}{}, client.CoreV1().Pods("default").Delete(context.Background(), pods[i].Name, metav1.DeleteOptions{})
			})
			return fmt.Sprintf("none is on %s, and %s was deleted: %v", m.Node, pods[i].Name, err)
		}
	}
	return "none is on " + m.Node
}

// suspected asks a server that lives what it knows by gossip.
func (d *death) suspected(by *Machine) string {
	out, err := by.Command(d.c.binary, "cluster", "status", "--kubeconfig=/etc/setpoint/"+by.Server+".kubeconfig", "-o", "json")
	var report struct {
		Servers []struct {
			Status struct {
				Gossip []liveness.GossipMember `json:"gossip"`
			} `json:"status"`
		} `json:"servers"`
	}
	// The verdict stands behind it, as the error of the command.
	if jsonErr := json.NewDecoder(strings.NewReader(out)).Decode(&report); jsonErr != nil {
		return fmt.Sprintf("%v %v: %.300s", err, jsonErr, out) // it fails while a server is away, and answers all the same
	}
	for _, server := range report.Servers {
		alive := func(member liveness.GossipMember) bool { return member.Name == d.m.Node && member.State == "alive" }
		if len(server.Status.Gossip) > 0 && !slices.ContainsFunc(server.Status.Gossip, alive) {
			return ""
		}
	}
	return fmt.Sprintf("nobody suspects %s: %+v", d.m.Node, report)
}

func (d *death) tainted(ctx context.Context) string {
	node, err := Ask(d.c, func(client kubernetes.Interface) (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(ctx, d.m.Node, metav1.GetOptions{})
	})
	if err != nil {
		return err.Error()
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) {
		return ""
	}
	return fmt.Sprintf("%s has the taints %v", d.m.Node, node.Spec.Taints)
}

// evicted waits for the end of the toleration and the eviction, which is not before it, and returns the pods. The toleration begins
// with the first taint: another one that takes its place later, as unreachable does of not-ready, gives the pods no more time.
func (d *death) evicted() (names []string) {
	d.Helper()
	Until(d.T, patience, func(context.Context) string {
		pods, err := d.c.pods("web")
		if err != nil {
			return err.Error()
		}
		names = nil
		for _, pod := range pods {
			if pod.Spec.NodeName != d.m.Node {
				continue
			}
			if pod.DeletionTimestamp == nil {
				return pod.Name + " stays"
			}
			asked := pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
			if early := d.start.Add(toleration).Sub(asked); early > time.Second { // asked is in whole seconds
				d.Errorf("%s was evicted %v before the end of its toleration", pod.Name, early)
			}
			names = append(names, pod.Name)
		}
		if len(names) == 0 {
			return "no pod of the node is there"
		}
		return ""
	})
	d.saw("the toleration of its pods is over")
	for _, name := range names {
		d.disrupted(name)
	}
	d.saw("its pods are evicted, and say why")
	return names
}

// disrupted checks that a pod says who evicted it.
func (d *death) disrupted(name string) {
	d.Helper()
	pod, err := Ask(d.c, func(client kubernetes.Interface) (*corev1.Pod, error) {
		return client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	})
	if err != nil {
		d.Fatal(err)
	}
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByTaintManager"
	}) {
		d.Errorf("%s does not say who evicted it: %+v", name, pod.Status.Conditions)
	}
}

// elsewhere waits for three ready pods of web on other nodes, and returns their names.
func (c *Cluster) elsewhere(t *testing.T, m *Machine) (names []string) {
	t.Helper()
	Until(t, patience, func(context.Context) string {
		pods, err := c.pods("web")
		if n := readyElsewhere(pods, m.Node); err != nil || n < 3 {
			return fmt.Sprintf("%d of 3 pods are ready elsewhere: %v\n%s", n, err, describe(pods))
		}
		names = nil
		for i := range pods {
			if podReady(&pods[i]) && pods[i].Spec.NodeName != m.Node {
				names = append(names, pods[i].Name)
			}
		}
		return ""
	})
	slices.Sort(names)
	return names
}

// left says which of the pods are still there.
func (d *death) left(names []string) string {
	pods, err := d.c.pods("web")
	if err != nil {
		return err.Error()
	}
	for _, pod := range pods {
		if slices.Contains(names, pod.Name) {
			return pod.Name + " is still there"
		}
	}
	return ""
}
