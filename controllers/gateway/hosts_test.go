package gateway

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// TestOneObjectHasAFewEvents, whatever it claims, and none again while that stays.
func TestOneObjectHasAFewEvents(t *testing.T) {
	events := &reconciletest.Events{}
	c := &controller{env: &reconcile.Env{Events: events}}
	for range 2 {
		pass := newTelling(c)
		for route, count := range map[string]int{"greedy": 3 * eventsMax, "modest": 2} {
			r := &v1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: route, UID: types.UID(route)}}
			for i := range count {
				pass.say(r, fmt.Sprintf("%s: host %d", route, i))
			}
		}
		c.told = pass.told
	}
	all := events.List()
	if len(all) != eventsMax+1+2 || strings.Count(strings.Join(all, "\n"), "others have more than 20 of its hosts") != 1 {
		t.Errorf("%d events: %q", len(all), all)
	}
}
