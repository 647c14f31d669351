package explain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// TestAFirewallIsBlamed for its node, and for pods that it cuts off, ready or not. Pods of other nodes and those on the machine's own
// network are not concerned.
func TestAFirewallIsBlamed(t *testing.T) {
	problem := nodefirewall.Problem{Input: true, What: "pods have no DNS: ufw, it seems", Command: "ufw allow from 10.42.0.0/16"}
	walled := aNode("a", true)
	walled.Status.Conditions = append(walled.Status.Conditions, problem.Condition())
	elsewhere, onHost := aPod("elsewhere"), aPod("host")
	elsewhere.Spec.NodeName, onHost.Spec.HostNetwork = "b", true
	s := (&scene{}).with(Nodes, walled, aNode("b", true)).with(Pods, aPod("ready"), unready("bad", running("c")), elsewhere, onHost)
	for name, blames := range map[Object]bool{
		Nodes.Named("", "a"): true, Nodes.Named("", "b"): false, Pods.Named("n", "ready"): true, Pods.Named("n", "bad"): true,
		Pods.Named("n", "elsewhere"): false, Pods.Named("n", "host"): false,
	} {
		answer, blamed := s.explain(t, name), false
		for _, c := range flat(answer.Causes) {
			blamed = blamed || c.Object == Nodes.Named("", "a") && c.What == problem.What && c.Command == problem.Command && c.Change != ""
		}
		if blamed != blames || blames && hasSuspect(answer.Innocent, [2]string{"Node/a", ""}) {
			t.Errorf("%s: blamed %v: %+v", name, blamed, answer)
		}
	}
	walled.Status.Conditions[1] = nodefirewall.Problem{}.Condition()
	if answer := s.explain(t, Pods.Named("n", "ready")); answer.Held || walled.Status.Conditions[1].Status != corev1.ConditionFalse {
		t.Errorf("without a problem: %+v", answer)
	}
}
