package rolloutstatus

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// version is one of a Deployment of one replica with the image v2.
const version = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, generation: 2}
spec:
  replicas: 1
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%%, maxUnavailable: 25%%}}
  template: {spec: {containers: [{name: c, image: v2}]}}
status: {observedGeneration: %d, %s}`

// TestJudge: the judge finds what misled a client, and nothing in what is right.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name, image string
		generation  int
		status      string
		finding     string
	}{
		{"the status of the version before", "v1", 1, "replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1", ""},
		{"nothing is asked for yet", "v1", 2, "replicas: 1, readyReplicas: 1, availableReplicas: 1", "counting: generation 2"},
		{"one pod is asked for", "v1", 2, "replicas: 1, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 1", ""},
		{"the old pod counts as a new one", "v1", 2, "replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1", "kubectl rollout status: generation 2"},
		{"the new pod is ready", "v2", 2, "replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJudge(1)
			j.seePod(podOf(c.image), false)
			j.seeWorkload(read(t, fmt.Sprintf(version, c.generation, c.status)))
			all := strings.Join(j.findings, "\n")
			if c.finding == "" && all != "" || !strings.Contains(all, c.finding) {
				t.Errorf("%q, want %q", all, c.finding)
			}
		})
	}
}

// podOf is a ready pod.
func podOf(image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return &object
}
