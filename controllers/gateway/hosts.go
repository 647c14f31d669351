package gateway

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/router/gateway"
	"github.com/setpoint-io/setpoint/agent/router/hosts"
	"github.com/setpoint-io/setpoint/agent/router/table"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

var (
	ingresses = reconcile.KindOf[*networkingv1.Ingress](networkingv1.SchemeGroupVersion.WithResource("ingresses"))
	classes   = reconcile.KindOf[*networkingv1.IngressClass](networkingv1.SchemeGroupVersion.WithResource("ingressclasses"))
)

// loss is an event of a host that somebody else has.
type loss struct {
	uid     types.UID
	message string
}

// served are the Ingresses of our class.
func (c *controller) served() ([]*networkingv1.Ingress, error) {
	known, err := c.classes.List("", nil)
	if err != nil {
		return nil, err
	}
	all, err := c.ingresses.List("", nil)
	if err != nil {
		return nil, err
	}
	return table.Ours(known, all), nil
}

// tell writes an event of each host that an object does not have, once for as long as that stays. Of two Ingresses controllers/ingress
// tells.
func (c *controller) tell(result *gateway.Result, served []*networkingv1.Ingress) {
	told := map[loss]bool{}
	say := func(claim hosts.Claim, message string) {
		object, ok := claim.Object.(runtime.Object)
		key := loss{claim.Object.GetUID(), message}
		if ok && !told[key] && !c.told[key] {
			c.env.Events.Event(object, corev1.EventTypeWarning, hosts.Reason, message)
		}
		told[key] = true
	}
	for _, lost := range result.Taken {
		say(lost.Claim, lost.Message)
	}
	for _, claim := range table.Claims(served) {
		if by, taken := result.Hosts.Taken(claim); taken && by.Gateway != "" {
			say(claim, claim.Message(by))
		}
	}
	c.told = told
}
