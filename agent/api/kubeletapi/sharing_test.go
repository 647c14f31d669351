package kubeletapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/internal/poddial"
)

func podIn(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// occupy takes places for pods until one is refused.
func occupy(s sharing, pod func(n int) *corev1.Pod) (taken int, refused *statusError) {
	for ; ; taken++ {
		if _, refused = s.enter(pod(taken)); refused != nil {
			return taken, refused
		}
	}
}

// TestPodsShareANode: neither the connections of one pod nor those of one namespace keep others from being reached.
func TestPodsShareANode(t *testing.T) {
	s := newSharing("streams", 100, 30)
	if n, refused := occupy(s, func(int) *corev1.Pod { return podIn("ten", "greedy") }); n != 30 ||
		refused.code != http.StatusTooManyRequests || !strings.Contains(refused.message, "30 belong to pod ten/greedy") {
		t.Errorf("one pod has %d: %v", n, refused)
	}
	if n, refused := occupy(s, func(n int) *corev1.Pod { return podIn("ten", fmt.Sprint(n)) }); n != 20 ||
		!strings.Contains(refused.message, "50 belong to namespace ten") {
		t.Errorf("other pods of its namespace have %d: %v", n, refused)
	}
	if n, _ := occupy(s, func(n int) *corev1.Pod { return podIn("eleven", fmt.Sprint(n)) }); n != 25 {
		t.Errorf("another namespace has %d", n)
	}
	if n, _ := occupy(s, func(int) *corev1.Pod { return podIn("kube-system", "dns") }); n != 30 {
		t.Errorf("a pod of the cluster's own has %d", n)
	}
}

func TestAConnectionToAPodIsRefusedWithTheReason(t *testing.T) {
	s, agent, pod := dialling(t, func(p *corev1.Pod) { p.Namespace, p.Name = "ten", "greedy" })
	if n, refused := occupy(s.dials, func(int) *corev1.Pod { return podIn("ten", "greedy") }); n != podDialsMax {
		t.Fatalf("%d: %v", n, refused)
	}
	_, err := open(t.Context(), t, agent, pod)
	if !errors.Is(err, poddial.ErrRefused) || !errors.Is(err, poddial.ErrBusy) || !strings.Contains(err.Error(), "256 belong to pod ten/greedy") {
		t.Errorf("%v", err)
	}
}

// TestAllStreamsOfAPodAreShared: each kind of stream is refused when its pod has its share.
func TestAllStreamsOfAPodAreShared(t *testing.T) {
	pod := podIn("ten", "greedy")
	pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	s := newServer(Config{NodeName: "n1", Runtime: podstest.New(nil), Pods: onePod{pod}})
	occupy(s.streams, func(int) *corev1.Pod { return pod })
	for _, path := range []string{"/containerLogs/ten/greedy/c", "/exec/ten/greedy/c", "/attach/ten/greedy/c", "/portForward/ten/greedy"} {
		answer := httptest.NewRecorder()
		s.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != http.StatusTooManyRequests || !strings.Contains(answer.Body.String(), "belong to pod ten/greedy") {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}
