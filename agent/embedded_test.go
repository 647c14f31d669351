package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest"
	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/demo"
)

// patience bounds every wait for real containers; a healthy machine needs
// milliseconds, an emulated one that has other things to do many seconds.
const patience = 45 * time.Second

// TestMain lets this executable be the runtime's shim and the demo image's
// only file, and runs the tests in a network and a mount namespace of their
// own, so that whatever they leave ends with them.
func TestMain(m *testing.M) {
	embedded.ReexecMain()
	if len(os.Args) > 1 && os.Args[1] == "demo" {
		os.Exit(demo.Main(os.Args[2:]))
	}
	if len(os.Args) == 4 && os.Args[1] == "copy" {
		os.Exit(copyFile(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 2 && os.Args[1] == "device" {
		os.Exit(useDevice())
	}
	if len(os.Args) == 2 && os.Args[1] == "cpus" {
		os.Exit(tellCPUs())
	}
	if len(os.Args) == 3 && os.Args[1] == "add" {
		os.Exit(addFile(os.Args[2]))
	}
	if len(os.Args) == 2 && os.Args[1] == "wait" {
		os.Exit(untilKilled())
	}
	if len(os.Args) == 3 && os.Args[1] == "hugepages" {
		os.Exit(takeHugePages(os.Args[2]))
	}
	networktest.Enter(unix.CLONE_NEWNET | unix.CLONE_NEWNS)
	os.Exit(m.Run())
}

// machine is an agent with the embedded runtime and a fake API.
type machine struct {
	t       *testing.T
	client  *fake.Clientset
	dir     string
	name    string
	runtime *embedded.Runtime
	url     string
	plugins bool
	// settings are without a file unless a test says otherwise.
	settings kubeletconfig.Settings
	cdiDirs  []string
	cancel   context.CancelFunc
	done     chan error
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces, mounts and cgroups")
	}
	m := &machine{t: t, client: fake.NewClientset(), dir: t.TempDir(), name: fmt.Sprintf("agent-test-%d", os.Getpid())}
	t.Cleanup(func() { machinetest.UnmountBelow(m.dir) })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: corev1.NodeSpec{PodCIDR: "10.199.9.0/24"}}
	if _, err := m.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) start() {
	m.t.Helper()
	logger := slog.New(slog.NewTextHandler(m.t.Output(), nil))
	rt, err := embedded.New(embedded.Config{DataDir: m.dir, NodeName: m.name, Bridge: "spagent0", ClusterCIDR: netip.MustParsePrefix("10.199.0.0/16"), CDIDirs: m.cdiDirs, Logger: logger})
	if err != nil {
		m.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // outlives the test's context: stop ends it
	m.runtime, m.url, m.cancel, m.done = rt, "http://"+listener.Addr().String(), cancel, make(chan error, 1)
	go func() {
		m.done <- Run(ctx, Config{NodeName: m.name, Client: m.client, Runtime: rt, DataDir: m.dir, NodeIP: net.IPv4(127, 0, 0, 1), Listener: listener, Plugins: m.plugins, Settings: m.settings, Logger: logger})
	}()
}

// stop ends the agent; the pods stay.
func (m *machine) stop() {
	m.t.Helper()
	m.cancel()
	if err := <-m.done; err != nil {
		m.t.Errorf("Run: %v", err)
	}
	if err := m.runtime.Close(context.Background()); err != nil {
		m.t.Errorf("close the runtime: %v", err)
	}
}

func (m *machine) clean() {
	sandboxes, _ := m.runtime.ListPodSandbox(context.Background(), nil)
	for _, s := range sandboxes {
		m.t.Errorf("sandbox %s left", s.Id)
		_ = m.runtime.RemovePodSandbox(context.Background(), s.Id)
	}
	m.stop()
	if err := m.runtime.Uninstall(); err != nil {
		m.t.Error(err)
	}
}

// await polls the fake API; real containers keep real time.
func (m *machine) await(what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	m.t.Helper()
	var p *corev1.Pod
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var err error
		p, err = m.client.CoreV1().Pods("default").Get(context.Background(), "web", metav1.GetOptions{})
		if err == nil && ok(p) || apierrors.IsNotFound(err) && ok(nil) {
			return p
		}
	}
	text, _ := json.MarshalIndent(p.Status, "", " ")
	events, _ := m.client.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	for _, e := range events.Items {
		m.t.Log(e.Reason, e.Message)
	}
	m.t.Fatalf("not in time: %s\n%s", what, text)
	return nil
}

// until waits for what no API tells, and reports whether it came.
func until(ok func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

func (m *machine) get(url string) string {
	m.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(body)
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TestALifeInRealContainers takes one pod from binding to deletion, across a
// crash of its container and a restart of the agent.
func TestALifeInRealContainers(t *testing.T) {
	m := newMachine(t)
	m.start()
	defer m.clean()
	grace := int64(5)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: m.name, RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log",
				VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
			}}},
	}
	time.Sleep(200 * time.Millisecond) // so that the time below is a pod's, not the agent's
	begin := time.Now()
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	t.Logf("bound to running: %v", time.Since(begin))
	p := m.await("ready", ready)
	t.Logf("bound to ready: %v", time.Since(begin))
	if body := m.get("http://" + p.Status.PodIP + ":8080/"); !strings.Contains(body, "web") || !strings.Contains(body, "v1") {
		t.Errorf("the pod says %q", body)
	}
	if !until(func() bool { return m.get(m.url+"/containerLogs/default/web/c") != "" }) { // it answers probes before it writes
		t.Error("no logs")
	}
	if resp, err := http.Get("http://" + p.Status.PodIP + ":8080/exit?code=3"); err == nil {
		resp.Body.Close()
	}
	p = m.await("restarted and ready", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 && ready(p) })
	if end := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("last state: %+v", end)
	}
	m.stop()
	m.settings.PodLogsDir, m.settings.LogLinksDir = filepath.Join(t.TempDir(), "pods"), filepath.Join(t.TempDir(), "containers")
	m.settings.LogLookEvery = 100 * time.Millisecond
	m.start()
	time.Sleep(time.Second)
	again := m.await("still ready", ready)
	if again.Status.ContainerStatuses[0].ContainerID != p.Status.ContainerStatuses[0].ContainerID || again.Status.PodIP != p.Status.PodIP {
		t.Errorf("after the agent's restart: %+v", again.Status)
	}
	m.findsLog("1.log", m.dir) // where its sandbox was told to have them
	now := metav1.Now()
	again.DeletionTimestamp, again.DeletionGracePeriodSeconds = &now, &grace
	begin = time.Now()
	if _, err := m.client.CoreV1().Pods("default").Update(t.Context(), again, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("deleted", func(p *corev1.Pod) bool { return p == nil })
	t.Logf("deletion: %v", time.Since(begin))
	if !until(func() bool { links, err := os.ReadDir(m.settings.LogLinksDir); return err == nil && len(links) == 0 }) {
		t.Error("links are left")
	}
	for _, dir := range []string{"pods", "logs"} {
		if left, _ := os.ReadDir(filepath.Join(m.dir, dir)); len(left) != 0 {
			t.Errorf("%d directories left in %s", len(left), dir)
		}
	}
}
