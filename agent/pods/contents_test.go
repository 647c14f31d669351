package pods

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// TestLabelsAreSeenAtOnce, also by a pod that an earlier agent started.
func TestLabelsAreSeenAtOnce(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.UID, pod.Labels = "uid-p", map[string]string{"at": "start"}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		w.create(pod)
		w.seeLabels(`at="start"`)
		w.relabel("later")
		w.settle()
		w.seeLabels(`at="later"`)
		w.stopAgent()
		w.relabel("while away")
		w.startAgent()
		w.settle()
		w.seeLabels(`at="while away"`)
	})
}

func (w *world) relabel(at string) {
	w.t.Helper()
	pod := w.get("p")
	pod.Labels = map[string]string{"at": at}
	if _, err := w.client.CoreV1().Pods("default").Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) seeLabels(want string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "pods", "*", "volumes", "*", "v", "labels"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("%v, %v", files, err)
	}
	if got, err := os.ReadFile(files[0]); string(got) != want || err != nil {
		w.t.Errorf("%s, want %s: %v", got, want, err)
	}
}
