package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// linkName is how collectors of logs, Fluent Bit for one, read a pod, a namespace, a container and its id from a name.
var linkName = regexp.MustCompile(`^web_default_c-[0-9a-f]{64}\.log$`)

// findsLog waits until the log of the pod's container is found as collectors of logs do.
func (m *machine) findsLog(name, below string) {
	m.t.Helper()
	var links []string
	found := until(func() bool {
		links, _ = filepath.Glob(filepath.Join(m.settings.LogLinksDir, "*")) // the pattern is well-formed
		return slices.ContainsFunc(links, func(link string) bool {
			path, err := os.Readlink(link)
			text, readErr := os.ReadFile(path)
			return err == nil && readErr == nil && linkName.MatchString(filepath.Base(link)) && filepath.Base(path) == name &&
				strings.HasPrefix(path, below+"/") && strings.Contains(string(text), " stdout ")
		})
	})
	if !found {
		m.t.Errorf("no link to a %s with a line below %s: %v", name, below, links)
	}
}

// TestRealLogsAreWhereCollectorsLook, and are gone with their pod.
func TestRealLogsAreWhereCollectorsLook(t *testing.T) {
	m := newMachine(t)
	m.settings.PodLogsDir, m.settings.LogLinksDir = filepath.Join(t.TempDir(), "pods"), filepath.Join(t.TempDir(), "containers")
	m.start()
	defer m.clean()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: m.name, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/setpoint", "cpus"},
		}}},
	}
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	m.findsLog("0.log", m.settings.PodLogsDir)
	if entries, err := os.ReadDir(filepath.Join(m.dir, "logs")); err != nil || len(entries) > 0 {
		t.Errorf("in the data directory: %v, %v", entries, err)
	}
	if err := m.client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var left []os.DirEntry
	gone := until(func() bool {
		var err error
		left, err = os.ReadDir(m.settings.PodLogsDir)
		return err == nil && len(left) == 0
	})
	if !gone {
		t.Errorf("left: %v", left)
	}
}
