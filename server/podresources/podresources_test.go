package podresources

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "s", Priority: new(int32(7)), Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), "example.com/gpu": resource.MustParse("1")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ki"), "hugepages-2Mi": resource.MustParse("0")},
			}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func scrape(t *testing.T, pods Pods) (code int, series []string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(pods).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", Path, nil))
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			series = append(series, strings.TrimSpace(line))
		}
	}
	slices.Sort(series)
	return w.Code, series
}

// TestSeries are upstream's: a pod that has ended has none, one without a node has.
func TestSeries(t *testing.T) {
	_, got := scrape(t, func() ([]*corev1.Pod, error) {
		return []*corev1.Pod{pod("runs", "n", corev1.PodRunning), pod("ended", "n", corev1.PodSucceeded), pod("waits", "", corev1.PodPending)}, nil
	})
	want := []string{
		`kube_pod_resource_limit{namespace="ns",node="",pod="waits",priority="7",resource="memory",scheduler="s",unit="bytes"} 1024`,
		`kube_pod_resource_limit{namespace="ns",node="n",pod="runs",priority="7",resource="memory",scheduler="s",unit="bytes"} 1024`,
		`kube_pod_resource_request{namespace="ns",node="",pod="waits",priority="7",resource="cpu",scheduler="s",unit="cores"} 0.25`,
		`kube_pod_resource_request{namespace="ns",node="",pod="waits",priority="7",resource="example.com/gpu",scheduler="s",unit=""} 1`,
		`kube_pod_resource_request{namespace="ns",node="n",pod="runs",priority="7",resource="cpu",scheduler="s",unit="cores"} 0.25`,
		`kube_pod_resource_request{namespace="ns",node="n",pod="runs",priority="7",resource="example.com/gpu",scheduler="s",unit=""} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTextThatIsNone: protobuf lets a pod be made whose scheduler's name is no UTF-8. Others have their series all the same.
func TestTextThatIsNone(t *testing.T) {
	odd := pod("odd", "n", corev1.PodRunning)
	odd.Spec.SchedulerName = "a\xffb"
	code, got := scrape(t, func() ([]*corev1.Pod, error) { return []*corev1.Pod{odd, pod("runs", "n", corev1.PodRunning)}, nil })
	if code != 200 || len(got) != 6 || !strings.Contains(got[0], "scheduler=\"a\uFFFDb\"") {
		t.Errorf("%d: %q", code, got)
	}
}

// TestScrapesAtOnce: one more than may be is refused while the others are answered.
func TestScrapesAtOnce(t *testing.T) {
	begun, end, scrapes := make(chan struct{}), make(chan struct{}), sync.WaitGroup{}
	handler := Handler(func() ([]*corev1.Pod, error) { begun <- struct{}{}; <-end; return nil, nil })
	ask := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", Path, nil))
		return w.Code
	}
	for range scrapesMax {
		scrapes.Go(func() { ask() })
		<-begun
	}
	if code := ask(); code != 503 {
		t.Errorf("%d, want 503", code)
	}
	close(end)
	scrapes.Wait()
}

func TestWithoutPods(t *testing.T) {
	code, series := scrape(t, func() ([]*corev1.Pod, error) { return nil, errors.New("no snapshot") })
	if code != 500 {
		t.Errorf("%d, %v", code, series)
	}
}
