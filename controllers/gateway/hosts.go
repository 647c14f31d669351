package gateway

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

var (
	ingresses = reconcile.KindOf[*networkingv1.Ingress](networkingv1.SchemeGroupVersion.WithResource("ingresses"))
	classes   = reconcile.KindOf[*networkingv1.IngressClass](networkingv1.SchemeGroupVersion.WithResource("ingressclasses"))
)

// eventsMax is how many lost hosts of one object have an event: events of all namespaces wait in one queue.
const eventsMax = 20

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

// tell writes an event of each host that an object does not have, once for as long as that stays, eventsMax of one object. Of two
// Ingresses controllers/ingress tells.
func (c *controller) tell(result *gateway.Result, served []*networkingv1.Ingress) {
	t := newTelling(c)
	for _, lost := range result.Taken {
		t.say(lost.Object, lost.Message)
	}
	for _, claim := range table.Claims(served) {
		if by, taken := result.Hosts.Taken(claim); taken && by.Gateway != "" {
			t.say(claim.Object, claim.Message(by))
		}
	}
	c.told = t.told
}

// telling is one pass of tell.
type telling struct {
	*controller
	told  map[loss]bool
	ofOne map[types.UID]int
}

func newTelling(c *controller) *telling { return &telling{c, map[loss]bool{}, map[types.UID]int{}} }

func (t *telling) say(o metav1.Object, message string) {
	of := o.GetUID()
	if t.told[loss{of, message}] {
		return
	}
	switch t.ofOne[of]++; {
	case t.ofOne[of] == eventsMax+1:
		message = fmt.Sprintf("others have more than %d of its hosts: the rest have no event", eventsMax)
	case t.ofOne[of] > eventsMax:
		return
	}
	key := loss{of, message}
	if object, ok := o.(runtime.Object); ok && !t.controller.told[key] {
		t.env.Events.Event(object, corev1.EventTypeWarning, hosts.Reason, message)
	}
	t.told[key] = true
}
