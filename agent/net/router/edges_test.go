package router

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// TestOnlyEdgesServe: a node that may not serve neither listens nor reads a Secret, from the moment on when another one is chosen.
func TestOnlyEdgesServe(t *testing.T) {
	client := fake.NewSimpleClientset(
		&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "setpoint"}, Spec: networkingv1.IngressClassSpec{Controller: table.Controller}},
		secured(ingress("a.com"), "one"), service("a.com"), certificate(t, "one", "1"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "self"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
	)
	s := &site{t: t, client: client, backends: map[string]string{}}
	s.plain = freeAddress(t)
	_, port, _ := net.SplitHostPort(s.plain)
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	s.router, err = newRouter(Config{
		Ports: Ports{HTTP: number}, Informers: factory, Nodes: factory, NodeName: "self", Client: client, Metrics: NewMetrics(),
		Reserved: reserved.New(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, s.dial)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	factory.StartWithContext(ctx)
	running.Go(func() { s.router.run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); factory.Shutdown() })

	expect := func(serves bool) {
		t.Helper()
		s.reached(serves)
		s.known("who serves", func(t *table.Table) bool { return (t.Certificate("a.com") != nil) == serves })
		if n := s.router.secrets.Followed(); n != 0 != serves {
			t.Errorf("%d Secrets are followed", n)
		}
	}
	label := func(node, value string) {
		t.Helper()
		labels := map[string]string{}
		if value != "" {
			labels[reserved.EdgeLabel] = value
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels}}
		if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect(true)
	label("other", "true")
	expect(false)
	label("self", "true")
	expect(true)
	label("self", "false")
	expect(false)
	label("self", "")
	label("other", "")
	expect(true)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
