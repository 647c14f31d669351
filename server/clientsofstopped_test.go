package server

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestWatchesGoOnElsewhere: while a server stops, its watches end between two events, and go on
// at another server without a gap and without a repetition.
func TestWatchesGoOnElsewhere(t *testing.T) {
	cluster, addresses, servers, _ := startThree(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, s := range servers {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	leaving, staying := configMapsAt(t, cluster, addresses[0]), configMapsAt(t, cluster, addresses[1])
	list, err := leaving.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stopped, written := make(chan error, 1), make(chan int, 1)
	gone := make(chan struct{})
	go func() { written <- writeConfigMaps(ctx, staying, gone) }()
	seen := &reader{ctx: ctx, t: t, version: list.ResourceVersion}
	for seen.count < writesBefore {
		seen.read(leaving, func() bool {
			if seen.count == writesBefore {
				go func() { defer close(gone); stopped <- servers[0].Stop() }()
			}
			return false // until the server ends the watch
		})
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	total := <-written
	if seen.count > total {
		t.Fatalf("%d were seen, %d written before the time was over", seen.count, total)
	}
	for seen.count < total {
		seen.read(staying, func() bool { return seen.count == total })
	}
}

const (
	// writesBefore are seen before the server stops, writesAfter happen when it has gone.
	writesBefore = 50
	writesAfter  = 10
)

// reader follows the config maps that writeConfigMaps writes.
type reader struct {
	ctx     context.Context
	t       *testing.T
	version string
	count   int
}

// read goes on where the last call ended, until enough says so or the watch ends. It also ends while a server on a slow machine has lost its
// leader, as it may: who reads asks again then, like every client.
func (r *reader) read(at corev1client.ConfigMapInterface, enough func() bool) {
	r.t.Helper()
	w, err := at.Watch(r.ctx, metav1.ListOptions{ResourceVersion: r.version, LabelSelector: "written=here"})
	if apierrors.IsServiceUnavailable(err) {
		return
	}
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error && apierrors.IsServiceUnavailable(apierrors.FromObject(event.Object)) {
			return
		}
		cm, ok := event.Object.(*corev1.ConfigMap)
		if want := nameOf(r.count); event.Type != watch.Added || !ok || cm.Name != want {
			r.t.Fatalf("%s %+v, want %s", event.Type, event.Object, want)
		}
		r.version = cm.ResourceVersion
		if r.count++; enough() {
			return
		}
	}
}

func nameOf(i int) string { return fmt.Sprintf("written-%05d", i) }

// writeConfigMaps creates them one after the other until a while after gone, and returns how many.
// Who writes while the leader changes may not hear whether it worked, and asks again.
func writeConfigMaps(ctx context.Context, at corev1client.ConfigMapInterface, gone <-chan struct{}) int {
	after := 0
	for i := 0; ctx.Err() == nil; {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: nameOf(i), Labels: map[string]string{"written": "here"}}}
		if _, err := at.Create(ctx, cm, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			continue
		}
		i++
		select {
		case <-gone:
			if after++; after == writesAfter {
				return i
			}
		default:
		}
	}
	return 0
}

func configMapsAt(t *testing.T, cluster *trust.Cluster, server trust.Server) corev1client.ConfigMapInterface {
	t.Helper()
	return clientAt(t, cluster, server).CoreV1().ConfigMaps("default")
}

// clientAt is an administrator at one server.
func clientAt(t *testing.T, cluster *trust.Cluster, server trust.Server) kubernetes.Interface {
	t.Helper()
	admin, err := cluster.CA.IssueAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config, err := admin.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + server.Endpoint, QPS: -1,
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
