package nodefirewall

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAProblemIsReadAsItWasTold.
func TestAProblemIsReadAsItWasTold(t *testing.T) {
	for reason, p := range map[string]Problem{
		InputBlocked:              {Input: true, What: "no DNS", Command: "ufw allow from 10.42.0.0/16"},
		ForwardingBlocked:         {Forwarding: true, What: "nothing outside"},
		InputAndForwardingBlocked: {Input: true, Forwarding: true, What: "neither", Command: "a && b"}, PacketsPass: {},
	} {
		c := p.Condition()
		if c.Type != Type || c.Reason != reason || c.Message == "" || (c.Status == corev1.ConditionTrue) != p.Any() {
			t.Errorf("%+v is told as %+v", p, c)
		}
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is posting ready status"}
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready, c}}}
		if got := Of(node); got != p {
			t.Errorf("%+v is read as %+v", p, got)
		}
	}
	if Of(nil).Any() || Of(&corev1.Node{}).Any() {
		t.Error("a Node that tells nothing has a problem")
	}
}
