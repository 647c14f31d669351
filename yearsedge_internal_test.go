package setpoint

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
)

// edge is an agent: it has joined with a token, renews its certificates, holds a session, follows the authorities, and has a pod. It goes
// by the cluster's time, as the agents of a real cluster do.
type edge struct {
	*years
	membership *join.Membership
	client     kubernetes.Interface
	pod        *corev1.Pod

	mu sync.Mutex
	// gossip are the keys of gossip.
	gossip trust.GossipKeys
}

// ringHeld implements session.Client.RingHeld.
func (e *edge) ringHeld() session.RingHeld {
	e.mu.Lock()
	defer e.mu.Unlock()
	return session.RingHeld{Label: e.gossip.Label, IDs: e.gossip.IDs()}
}

// takeRing implements session.Client.Ring.
func (e *edge) takeRing(told session.Ring) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gossip = trust.GossipKeys{Label: told.Label, Keys: told.Keys}
}

const edgeName = "edge"

func (y *years) newEdge() *edge {
	e := &edge{years: y}
	var servers []string
	for i := range y.c.config.Replicas {
		servers = append(servers, y.c.endpoint(i))
	}
	e.join(servers)
	config, err := e.membership.Client().ClientConfig()
	y.must(err)
	config.ServerName = everyServer
	through := trust.NewTransport(e.membership.Client(), config, y.transport)
	e.client = kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://" + servers[1], Transport: through, QPS: -1})
	keeper := &session.Client{
		HTTP: &http.Client{Transport: through}, Logger: slog.New(slog.DiscardHandler),
		AuthoritiesHeld: e.membership.AuthoritiesHeld, Authorities: e.membership.Follow,
		RingHeld: e.ringHeld, Ring: e.takeRing,
		Servers: func() (urls []string) {
			for _, server := range servers {
				urls = append(urls, "https://"+server)
			}
			return urls
		},
	}
	var running sync.WaitGroup
	running.Go(func() { e.membership.Run(y.Context()) })
	running.Go(func() { _ = keeper.Run(y.Context()) })
	y.Cleanup(running.Wait)
	e.start()
	return e
}

func (e *edge) join(servers []string) {
	m, err := join.Open(e.Context(), join.MembershipConfig{
		NodeName: edgeName, DataDir: e.TempDir(), Servers: func() []string { return servers }, Clock: e.c.Clock(),
		Token: func(context.Context) (string, error) { return e.c.trust.NodeToken.Text(), nil },
		Through: func(next http.RoundTripper) http.RoundTripper {
			next.(*http.Transport).DialContext = e.dial
			return next
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	e.must(err)
	e.membership, e.gossip = m, m.Node().GossipKeys.Told()
}

// start makes the node and a pod on it Ready.
func (e *edge) start() {
	ready := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`) // loops write the Node too
	_, err := e.client.CoreV1().Nodes().PatchStatus(e.Context(), edgeName, ready)
	e.must(err)
	pod, err := e.inside.CoreV1().Pods("default").Create(e.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stays"},
		Spec:       corev1.PodSpec{NodeName: edgeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	e.must(err)
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	e.pod, err = e.client.CoreV1().Pods("default").UpdateStatus(e.Context(), pod, metav1.UpdateOptions{})
	e.must(err)
}

// beat renews the Lease, and fails if the pod is not as it was or a controller takes the node for lost.
func (e *edge) beat() error {
	pod, err := e.client.CoreV1().Pods("default").Get(e.Context(), e.pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node, err := e.client.CoreV1().Nodes().Get(e.Context(), edgeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	isSeen := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if pod.UID != e.pod.UID || pod.DeletionTimestamp != nil || !isReady || !isSeen || len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the pod: %v; its node: %v, %v", pod.Status.Conditions, node.Status.Conditions, node.Spec.Taints)
	}
	return e.lease()
}

func (e *edge) lease() error {
	leases := e.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(e.Context(), edgeName, metav1.GetOptions{})
	next := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: edgeName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(edgeName), RenewTime: new(metav1.NewMicroTime(e.now()))},
	}
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(e.Context(), next, metav1.CreateOptions{})
	case err == nil:
		next.ResourceVersion = lease.ResourceVersion
		_, err = leases.Update(e.Context(), next, metav1.UpdateOptions{})
	}
	return err
}
