package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

const (
	benchClients = 16
	benchRounds  = 21
	benchRound   = 300 * time.Millisecond
)

// BenchmarkRouter compares this router, at 5 and at 5,000 hosts, with Go's own reverse proxy before the same backend. They take turns, so
// that what else runs on the machine meets all alike; clients and backend are in the process, too.
func BenchmarkRouter(b *testing.B) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1024)) }))
	defer backend.Close()
	to := backend.Listener.Addr().String()
	bare := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: to})
			p.SetXForwarded()
		},
		Transport: &http.Transport{MaxIdleConns: idleMax, MaxIdleConnsPerHost: idlePerEndpoint},
	})
	defer bare.Close()
	servers := []asked{
		{at: bare.Listener.Addr().String(), hosts: 5}, {at: benchRouter(b, 5, to), hosts: 5}, {at: benchRouter(b, 5000, to), hosts: 5000},
	}
	var ratios, costs [3][]float64
	for round := range benchRounds {
		for i := range servers {
			servers[(round+i)%len(servers)].ask(b)
		}
		for i := range servers {
			ratios[i] = append(ratios[i], servers[i].last/servers[0].last)
			costs[i] = append(costs[i], servers[i].cpu/servers[0].cpu)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(servers[0].median(), "bare-req/s")
	b.ReportMetric(servers[1].median(), "req/s")
	b.ReportMetric(median(ratios[1]), "x-bare")
	b.ReportMetric(median(ratios[2]), "x-bare-5000-hosts")
	b.ReportMetric(median(costs[1]), "cpu-x-bare")
	b.ReportMetric(median(costs[2]), "cpu-x-bare-5000-hosts")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// benchRouter serves so many Ingresses, all of them to one backend, until the benchmark ends. It returns its address.
func benchRouter(b *testing.B, hosts int, backend string) string {
	b.Helper()
	dialBackend := func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, backend) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	client := fake.NewSimpleClientset()
	r, err := newRouter(Config{
		Ports: Ports{HTTP: port}, Informers: informers.NewSharedInformerFactory(client, 0), Client: client, Metrics: NewMetrics(), Reserved: reserved.New(),
		Logger: slog.New(slog.DiscardHandler),
	}, dialBackend)
	if err != nil {
		b.Fatal(err)
	}
	var all []*networkingv1.Ingress
	for i := range hosts {
		made := ingress(benchHost(i))
		made.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "web"
		all = append(all, made)
	}
	classes := []*networkingv1.IngressClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "setpoint"}, Spec: networkingv1.IngressClassSpec{Controller: table.Controller},
	}}
	built, _ := table.Build(table.Input{
		Classes: classes, Ingresses: table.Ours(classes, all), Service: func(string, string) *corev1.Service { return service("web") },
		Slices: func(string, string) []*discoveryv1.EndpointSlice {
			return []*discoveryv1.EndpointSlice{slice("web", "10.0.0.1")}
		},
	})
	r.table.Store(built)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { r.serve(ctx, l, port, false) })
	b.Cleanup(func() { cancel(); serving.Wait() })
	return l.Addr().String()
}

func benchHost(i int) string { return fmt.Sprintf("host-%d.example.com", i) }

// asked is a server with what it answered.
type asked struct {
	at    string
	hosts int
	rates []float64
	// last is the rate of the last round, cpu the processor time of one of its requests, with what client and backend took.
	last, cpu float64
}

func (a *asked) median() float64 { return median(a.rates) }

// ask asks for benchRound, each client one request after another, each for a random host.
func (a *asked) ask(b *testing.B) {
	transport := &http.Transport{MaxIdleConnsPerHost: benchClients}
	defer transport.CloseIdleConnections()
	var answered atomic.Int64
	begun, before := time.Now(), processorTime()
	var clients sync.WaitGroup
	for range benchClients {
		clients.Go(func() {
			for time.Since(begun) < benchRound {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+a.at+"/some/path?q=1", nil)
				if err != nil {
					b.Error(err)
					return
				}
				req.Host = benchHost(rand.IntN(a.hosts))
				answer, err := transport.RoundTrip(req)
				if err != nil {
					b.Error(err)
					return
				}
				n, _ := io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK || n != 1024 {
					b.Errorf("%d with %d bytes", answer.StatusCode, n)
					return
				}
				answered.Add(1)
			}
		})
	}
	clients.Wait()
	a.last = float64(answered.Load()) / time.Since(begun).Seconds()
	a.cpu = (processorTime() - before).Seconds() / float64(answered.Load())
	a.rates = append(a.rates, a.last)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it cannot fail with these
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
