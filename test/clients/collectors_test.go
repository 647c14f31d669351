package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// machineData is the data directory of the machine's own cluster, whose node has its pods' logs in /var/log/pods.
const machineData = "/var/lib/setpoint"

// TestCollectors lets a collector of logs read what pods of a real node write (root).
func TestCollectors(t *testing.T) {
	if !alone(t) {
		return
	}
	images := t.TempDir()
	mustf(t, writeBoxImage(filepath.Join(images, "box.tar"), "example.com/box:v1"), "writing an image")
	dev := mustStart(t, "Setpoint is ready", nil, "setpoint", "dev", "--port", "0", "--images-dir", images)
	c := &cluster{}
	kubeconfig, err := clientcmd.LoadFromFile(filepath.Join(machineData, "admin.kubeconfig"))
	mustf(t, err, "reading the kubeconfig")
	c.useKubeconfig(t, kubeconfig)
	collector := mustStart(t, "collecting", nil, "collector")

	long := strings.Repeat("long,", 8000) // three parts in the file
	c.kubectl(t, fmt.Sprintf(talkers, long), "apply", "-f", "-")
	for _, want := range []entry{
		{Namespace: "default", Pod: "talker", Container: "first", Restarts: "0", Stream: "stdout", Body: "hello"},
		{Namespace: "default", Pod: "talker", Container: "long", Restarts: "0", Stream: "stdout", Body: long},
		{Namespace: "default", Pod: "crasher", Container: "crasher", Restarts: "0", Stream: "stderr", Body: absent},
		{Namespace: "default", Pod: "crasher", Container: "crasher", Restarts: "1", Stream: "stderr", Body: absent},
	} {
		pod, err := c.client.CoreV1().Pods(want.Namespace).Get(t.Context(), want.Pod, metav1.GetOptions{})
		mustf(t, err, "getting a pod")
		want.UID = string(pod.UID)
		awaitEntry(t, collector, want)
	}
	c.kubectl(t, "", "delete", "pods", "--all", "--wait", "--grace-period", "1")
	for _, dir := range []string{"/var/log/pods", "/var/log/containers"} {
		awaitEmpty(t, dir)
	}
	mustf(t, collector.stop(), "stopping the collector")
	mustf(t, dev.stop(), "stopping the cluster")
}

// absent is what the box writes of a file that is not there.
const absent = "box: open /absent: no such file or directory"

const talkers = `
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  restartPolicy: Never
  initContainers: [{name: first, image: example.com/box:v1, command: [/bin/echo, hello]}]
  containers: [{name: long, image: example.com/box:v1, command: [/bin/echo, %q]}]
---
apiVersion: v1
kind: Pod
metadata: {name: crasher}
spec:
  containers: [{name: crasher, image: example.com/box:v1, command: [/bin/cat, /absent]}]
`

// entry is what the collector knows of a line, by the names of OpenTelemetry's conventions.
type entry struct {
	Namespace string `json:"k8s.namespace.name"`
	Pod       string `json:"k8s.pod.name"`
	UID       string `json:"k8s.pod.uid"`
	Container string `json:"k8s.container.name"`
	Restarts  string `json:"k8s.container.restart_count"`
	Stream    string `json:"log.iostream"`
	Body      string `json:"body"`
}

// awaitEntry waits until the collector has printed an entry.
func awaitEntry(t *testing.T, collector *process, want entry) {
	t.Helper()
	look(t, awaitTimeout, fmt.Sprintf("%.200v", want), func() (string, bool) {
		seen := map[entry]bool{}
		for line := range strings.Lines(collector.output.String()) {
			var e entry
			if json.Unmarshal([]byte(line), &e) == nil {
				seen[e] = true
			}
		}
		return fmt.Sprintf("%.2000v", slices.Collect(maps.Keys(seen))), seen[want]
	})
}

func awaitEmpty(t *testing.T, dir string) {
	t.Helper()
	look(t, awaitTimeout, "nothing in "+dir, func() (string, bool) {
		left, err := os.ReadDir(dir)
		return fmt.Sprint(left, err), err == nil && len(left) == 0
	})
}
