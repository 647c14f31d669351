package peers

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/setpoint-io/setpoint/internal/poddial"
)

func TestWhoseAgentConnectsToAPod(t *testing.T) {
	node := func(name, cidr string, age time.Duration, features ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
		n.Spec.PodCIDR, n.Status.DeclaredFeatures = cidr, features
		return n
	}
	nodes := []*corev1.Node{
		node("a", "10.42.0.0/24", 0, poddial.Feature),
		node("b", "10.42.1.0/24", 0, "Other", poddial.Feature),
		node("stock", "10.42.2.0/24", 0),
		node("liar", "10.42.1.0/24", -time.Hour, poddial.Feature), // younger than b
		node("older", "10.42.3.0/24", time.Hour),
		node("younger", "10.42.3.0/24", 0, poddial.Feature),
		node("new", "", 0, poddial.Feature),
		node("broken", "10.42", 0, poddial.Feature),
	}
	for address, want := range map[string]string{
		"10.42.0.7": "a", "10.42.1.255": "b", "10.42.2.1": "", "10.42.3.1": "", "10.42.9.1": "", "192.0.2.1": "", "::1": "", "::ffff:10.42.0.7": "a",
	} {
		got := ""
		if n := agentOf(nodes, netip.MustParseAddr(address).Unmap()); n != nil {
			got = n.Name
		}
		if got != want {
			t.Errorf("%s: by the agent of %q, want %q", address, got, want)
		}
	}
}

// TestABusyPodIsTold: a client of a proxy gets 429 with the agent's reason, as from any limit, and keeps other errors.
func TestABusyPodIsTold(t *testing.T) {
	to := netip.MustParseAddrPort("10.42.0.7:80")
	busy := failedDial("n1", to, fmt.Errorf("%w: %w: 256 belong to pod ten/greedy", poddial.ErrRefused, poddial.ErrBusy))
	if !apierrors.IsTooManyRequests(busy) || !strings.Contains(busy.Error(), "256 belong to pod ten/greedy") || responsewriters.ErrorToAPIStatus(busy).Code != 429 {
		t.Errorf("%#v", busy)
	}
	if other := failedDial("n1", to, io.EOF); !errors.Is(other, io.EOF) || apierrors.IsTooManyRequests(other) {
		t.Errorf("%#v", other)
	}
}
