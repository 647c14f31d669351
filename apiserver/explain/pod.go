package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/parts"
)

// pod explains a pod that is not being deleted.
func (e *explainer) pod(name Object, pod *corev1.Pod) finding {
	server, _, ofServer := parts.Of(pod)
	switch {
	case ofServer:
		return partOf(server, name, pod)
	case pod.Status.Phase == corev1.PodSucceeded:
		return finding{conclusion: name.String() + " has succeeded"}
	case pod.Status.Phase == corev1.PodFailed:
		return failed(name, pod)
	case len(pod.Spec.SchedulingGates) > 0:
		return e.gated(name, pod)
	case pod.Spec.NodeName == "":
		return e.pending(name, pod)
	case isReady(pod):
		return e.evictable(name, pod)
	}
	return e.notReady(name, pod)
}

// partOf explains the part of a server: it is on no node, and its condition says what the leader knows of it.
func partOf(server string, name Object, pod *corev1.Pod) finding {
	f := finding{}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			f.blame(Cause{Object: name, What: c.Message, Change: "start server " + server + ", or read what it logs"})
		}
	}
	return f.conclude(name.String()+" is not ready", name.String()+" is ready: server "+server+" says so")
}

// isReady is what the pod's condition says.
func isReady(pod *corev1.Pod) bool { return conditionOf(pod, corev1.PodReady) == corev1.ConditionTrue }

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func failed(name Object, pod *corev1.Pod) finding {
	f := finding{}
	if pod.Status.Reason != "" {
		f.blame(Cause{Object: name, What: pod.Status.Reason + ": " + pod.Status.Message})
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended := c.State.Terminated
		switch {
		case ended == nil:
		case ended.ExitCode == 0:
			f.clear(name, "container %s ended well", c.Name)
		default:
			f.blame(Cause{
				Object: name, What: fmt.Sprintf("container %s ended with code %d (%s)", c.Name, ended.ExitCode, ended.Reason),
				Change: "see its log: " + kubectl(name.Namespace, "logs", name.Name, "-c", c.Name),
			})
		}
	}
	return f.conclude(name.String()+" has failed", name.String()+" has failed, and its status does not say why")
}

// gated: the scheduler does not look at the pod before the last gate is removed.
func (e *explainer) gated(name Object, pod *corev1.Pod) finding {
	f := finding{}
	for _, gate := range pod.Spec.SchedulingGates {
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("the scheduling gate %q is not removed%s", gate.Name, setBy(pod, gate.Name)),
			Change:  "whoever set the gate removes it, or:",
			Command: patch(name, "strategic", fields([]any{map[string]any{"$patch": "delete", "name": gate.Name}}, "spec", "schedulingGates")),
		})
	}
	e.volumesOf(&f, pod, true)
	j := e.Judge(pod)
	for _, node := range j.Nodes {
		if len(node.Refusals) == 0 {
			f.clear(Nodes.of(node.Object), "every plugin of the scheduler accepts it")
		}
	}
	return f.conclude(name.String()+" waits behind scheduling gates: the scheduler does not look at it", "")
}

// pending explains a pod without a node.
func (e *explainer) pending(name Object, pod *corev1.Pod) finding {
	f := finding{}
	j := e.Judge(pod)
	if j.Foreign {
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("it asks for the scheduler %q, which is not a profile of this control plane", pod.Spec.SchedulerName),
			Change: "run that scheduler, give all servers a profile for it, or make the pod again with schedulerName: default-scheduler",
		})
		return f.conclude(name.String()+" waits for another scheduler", "")
	}
	e.volumesOf(&f, pod, false)
	f.clear(name, "it has no scheduling gates, and its scheduler is the one of this control plane")
	switch {
	case j.Refusal != "" && len(f.causes) == 0:
		f.blame(Cause{Object: name, What: j.Refusal})
	case j.Refusal == "" && len(j.Nodes) == 0:
		f.blame(Cause{Object: name, What: "there are no nodes", Change: "join one: setpoint agent"})
	case j.Refusal == "":
		e.byNodes(&f, name, pod, j)
	}
	if j.Refusal != "" {
		e.clearOthers(&f, pod)
	}
	held := fmt.Sprintf("%s has no node: %s", name, j.Message)
	if j.Message == "" {
		held = name.String() + " has no node yet"
	}
	return f.conclude(held, name.String()+" fits on a node now, and the scheduler has not bound it yet")
}

// clearOthers clears what a pod does not wait for while its claims hold it: nodes, and claims that it does not use.
func (e *explainer) clearOthers(f *finding, pod *corev1.Pod) {
	for _, node := range firstOf(list[*corev1.Node](e, Nodes, "")) {
		if nodeReady(node) && !node.Spec.Unschedulable {
			f.clear(Nodes.of(node), "it is Ready and takes pods; no node can help")
		}
	}
	for _, claim := range firstOf(list[*corev1.PersistentVolumeClaim](e, Claims, pod.Namespace)) {
		uses := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			name, is := claimOf(pod, &v)
			return is && name.Name == claim.Name
		})
		if !uses {
			f.clear(Claims.of(claim), "the pod does not use it")
		}
	}
}

// byNodes blames what stands against the node on which the least would have to change, and clears the plugins that refuse no node.
func (e *explainer) byNodes(f *finding, name Object, pod *corev1.Pod, j Judgement) {
	refusing := map[string]bool{}
	for _, node := range j.Nodes {
		f.nodes = append(f.nodes, node.Node)
		for _, refusal := range node.Refusals {
			refusing[refusal.Plugin] = true
		}
	}
	if best := smallestChange(j.Nodes); best != nil {
		for _, refusal := range best.Refusals {
			f.blame(Cause{
				Object: Nodes.of(best.Object), What: refusal.Plugin + ": " + strings.Join(refusal.Reasons, ", "),
				Change:  "it would fit there if " + strings.Join(refusal.Remedies, " and "),
				Command: e.lift(pod, best, refusal),
			})
		}
	} else {
		e.selectedClaims(f, pod)
	}
	for _, plugin := range j.Plugins {
		if !refusing[plugin] {
			f.clear(name, "%s accepts all %d nodes", plugin, len(j.Nodes))
		}
	}
}

// smallestChange is the node with the fewest steps, then the lowest cost, then the first name; nil if the pod fits on a node.
func smallestChange(nodes []JudgedNode) *JudgedNode {
	var best *JudgedNode
	for i := range nodes {
		node := &nodes[i]
		if len(node.Refusals) == 0 {
			return nil
		}
		if best == nil || node.before(best) {
			best = node
		}
	}
	return best
}

func (n *JudgedNode) before(other *JudgedNode) bool {
	if a, b := n.steps(), other.steps(); a != b {
		return a < b
	}
	if n.Cost != other.Cost {
		return n.Cost < other.Cost
	}
	return n.Name < other.Name
}

func (n *JudgedNode) steps() (steps int) {
	for _, refusal := range n.Refusals {
		steps += len(refusal.Remedies)
	}
	return steps
}

// evictable explains a pod that runs: nothing holds it but budgets, if somebody wants to evict it.
func (e *explainer) evictable(name Object, pod *corev1.Pod) finding {
	f := finding{}
	e.budgetsOf(&f, pod)
	if !e.packetsPass(&f, pod) {
		return f.conclude(name.String()+" is ready, but a firewall blocks its packets", "")
	}
	return f.conclude(name.String()+" is ready, but an eviction would be refused", name.String()+" is ready, and may be evicted")
}

func (e *explainer) clearNode(f *finding, pod *corev1.Pod) {
	node, exists := get[*corev1.Node](e, Nodes.Named("", pod.Spec.NodeName))
	switch {
	case !exists:
		f.blame(Cause{
			Object: Nodes.Named("", pod.Spec.NodeName), What: "the pod's node does not exist",
			Change: "the pod is deleted soon, or:", Command: kubectl(pod.Namespace, "delete", "pod", pod.Name, "--force"),
		})
	case !nodeReady(node):
		f.blame(Cause{Object: Nodes.of(node), What: notReadyBecause(node), Change: "start the agent of the node"})
	default:
		f.clear(Nodes.of(node), "it is Ready")
	}
}

func nodeReady(node *corev1.Node) bool {
	c := readyOf(node)
	return c != nil && c.Status == corev1.ConditionTrue
}

func readyOf(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

func notReadyBecause(node *corev1.Node) string {
	if c := readyOf(node); c != nil {
		return fmt.Sprintf("the node is not Ready: %s: %s", c.Reason, c.Message)
	}
	return "the node has not reported yet"
}
