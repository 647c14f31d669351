package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/settings"
)

// lone starts the same single server again and again, with other pod networks.
type lone struct {
	t        *testing.T
	dir      string
	cluster  *trust.Cluster
	address  trust.Server
	listener net.Listener
}

func newLone(t *testing.T) *lone {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l := &lone{t: t, dir: t.TempDir(), listener: listener, address: trust.Server{Name: "server-1", Endpoint: listener.Addr().String()}}
	if l.cluster, err = trust.InitCluster(t.TempDir(), []trust.Server{l.address}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lone) start(cidr string, mask int) (*Server, kubernetes.Interface) {
	l.t.Helper()
	return l.startWith(cidr, mask, "")
}

func (l *lone) startWith(cidr string, mask int, services string) (*Server, kubernetes.Interface) {
	l.t.Helper()
	network, err := podnetwork.Parse(podnetwork.Flags{CIDR: cidr, NodeMaskSize: mask, Services: services})
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := Start(context.Background(), Config{
		Name: l.address.Name, DataDir: l.dir, Trust: l.cluster, InitialServers: []trust.Server{l.address},
		Cluster:  settings.Cluster{Settings: controllers.Settings{PodNetwork: network}},
		Listener: l.listener, ListenAddress: l.address.Endpoint, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.listener = nil // the next one opens it again
	l.t.Cleanup(func() { _ = s.Stop() })
	client, err := kubernetes.NewForConfig(s.api.door.Config(inprocess.Server, 0))
	if err != nil {
		l.t.Fatal(err)
	}
	return s, client
}

func (l *lone) stop(s *Server) {
	l.t.Helper()
	if err := s.Stop(); err != nil {
		l.t.Fatal(err)
	}
}

// inForce waits until the cluster goes by a pod network that want says is right.
func (l *lone) inForce(ctx context.Context, s *Server, client kubernetes.Interface, want string) {
	l.t.Helper()
	if err := s.Ready(ctx); err != nil {
		l.t.Fatal(err)
	}
	got, found := podnetwork.Network{}, false
	for ctx.Err() == nil {
		var err error
		if got, found, err = podnetwork.Read(ctx, client); err != nil {
			l.t.Fatal(err)
		}
		if found && got.String() == want {
			return
		}
		process.Sleep(ctx, readyPollInterval)
	}
	l.t.Fatalf("in force is %s, %v; want %s", got, found, want)
}

// TestThePodNetworkIsTheClusters: 300 nodes have ranges of a larger network; it is written down, and what
// does not fit is refused.
func TestThePodNetworkIsTheClusters(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if auth.PodNetworkName != podnetwork.Name {
		t.Error("nodes may not read where it is written down")
	}
	l := newLone(t)
	s, client := l.start("10.40.0.0/14", 25)
	l.inForce(ctx, s, client, "10.40.0.0/14 by /25")
	manyNodes(ctx, t, client, 300)
	l.stop(s)

	s, _ = l.start("10.42.0.0/16", 0) // its nodes' parts fit; those of most nodes are elsewhere
	if err := s.Wait(ctx); !errors.Is(err, podnetwork.ErrNodesDoNotFit) {
		t.Errorf("a network without the nodes' ranges: %v", err)
	}
	l.stop(s)
	s, _ = l.start("", 24)
	if err := s.Wait(ctx); !errors.Is(err, podnetwork.ErrNodesDoNotFit) {
		t.Errorf("another size: %v", err)
	}
	l.stop(s)
	s, client = l.start("", 0)
	l.inForce(ctx, s, client, "10.40.0.0/14 by /25")
	l.stop(s)
	s, client = l.start("10.40.0.0/13", 0)
	l.inForce(ctx, s, client, "10.40.0.0/13 by /25")
	l.stop(s)
}

// TestServicesHaveTheirRange: the API, DNS and all others have addresses of it, certificates say so, and it never changes.
func TestServicesHaveTheirRange(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := newLone(t)
	s, client := l.startWith("", 0, "172.30.0.0/20")
	l.inForce(ctx, s, client, podnetwork.Default().String())
	drawn, err := client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil || !netip.MustParsePrefix("172.30.0.0/20").Contains(netip.MustParseAddr(drawn.Spec.ClusterIP)) {
		t.Fatalf("%+v, %v", drawn, err)
	}
	for name, want := range map[string]string{"default/kubernetes": "172.30.0.1", "kube-system/kube-dns": "172.30.0.10"} {
		namespace, service, _ := strings.Cut(name, "/")
		if got := l.addressOf(ctx, client, namespace, service); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if inForce, err := PodNetworkInForce(ctx, client); err != nil || inForce.Services.String() != "172.30.0.0/20" {
		t.Errorf("nodes are told %s, %v", inForce.Services, err)
	}
	certificate, err := tls.Dial("tcp", l.address.Endpoint, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer certificate.Close()
	if err := certificate.ConnectionState().PeerCertificates[0].VerifyHostname("172.30.0.1"); err != nil {
		t.Error(err)
	}
	l.stop(s)
	for _, other := range []string{"", "172.31.0.0/20"} {
		s, _ = l.startWith("", 0, other)
		if err := s.Wait(ctx); !errors.Is(err, podnetwork.ErrServicesStay) {
			t.Errorf("started with %q: %v", other, err)
		}
		l.stop(s)
	}
	s, client = l.startWith("", 0, "172.30.0.0/20")
	l.inForce(ctx, s, client, podnetwork.Default().String())
	l.stop(s)
}

// TestASecondFamilyIsAdded: to the ServiceCIDR and what nodes go by, while Services and nodes stay as they are; it never goes away.
func TestASecondFamilyIsAdded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := newLone(t)
	s, client := l.start("", 0)
	l.inForce(ctx, s, client, podnetwork.Default().String())
	manyNodes(ctx, t, client, 1)
	l.stop(s)
	const services, inForce = "10.96.0.0/16,fd96::/112", "10.42.0.0/16 by /24, fd42::/56 by /64"
	s, client = l.startWith("10.42.0.0/16,fd42::/56", 0, services)
	l.inForce(ctx, s, client, inForce)
	shown, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, podnetwork.ServiceCIDR, metav1.GetOptions{})
	if err != nil || strings.Join(shown.Spec.CIDRs, ",") != services {
		t.Errorf("%+v, %v", shown.Spec, err)
	}
	if got := l.addressOf(ctx, client, "default", "kubernetes"); got != "10.96.0.1" {
		t.Errorf("the API has %s", got)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "n000", metav1.GetOptions{})
	if err != nil || len(node.Spec.PodCIDRs) != 1 {
		t.Errorf("%+v, %v", node.Spec, err)
	}
	l.stop(s)
	for _, flags := range [][2]string{{"", ""}, {"10.42.0.0/16,fd42::/56", "10.96.0.0/16,fd97::/112"}} {
		s, _ = l.startWith(flags[0], 0, flags[1])
		if err := s.Wait(ctx); !errors.Is(err, podnetwork.ErrServicesStay) {
			t.Errorf("started with %v: %v", flags, err)
		}
		l.stop(s)
	}
	s, client = l.startWith("10.42.0.0/16,fd42::/56", 0, services)
	l.inForce(ctx, s, client, inForce)
	l.stop(s)
}

// addressOf waits for a Service.
func (l *lone) addressOf(ctx context.Context, client kubernetes.Interface, namespace, name string) string {
	l.t.Helper()
	for {
		got, err := client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return got.Spec.ClusterIP
		}
		if !apierrors.IsNotFound(err) || !process.Sleep(ctx, readyPollInterval) {
			l.t.Fatal(err)
		}
	}
}

// manyNodes creates nodes and waits until each has a range of its own.
func manyNodes(ctx context.Context, t *testing.T, client kubernetes.Interface, count int) {
	t.Helper()
	network, _, err := podnetwork.Read(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	events, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for i := range count {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%03d", i)}}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	owners := map[string]string{}
	for len(owners) < count {
		event, open := <-events.ResultChan()
		node, ok := event.Object.(*corev1.Node)
		if !open || !ok {
			t.Fatalf("%d of %d nodes have a range: %+v", len(owners), count, event)
		}
		cidr := node.Spec.PodCIDR
		if cidr == "" {
			continue
		}
		if _, ok := network.Range(cidr); !ok {
			t.Errorf("%s has %s", node.Name, cidr)
		}
		if other := owners[cidr]; other != "" && other != node.Name {
			t.Errorf("%s and %s have %s", node.Name, other, cidr)
		}
		owners[cidr] = node.Name
	}
}
