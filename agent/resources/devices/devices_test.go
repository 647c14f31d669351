package devices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/setpoint-io/setpoint/agent/resources/devices/devicestest"
	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

const gpu = "example.com/gpu"

// node is an agent's manager over a folder of the test.
type node struct {
	*Manager
	t       *testing.T
	dir     string
	changed chan struct{} // holds one
	touched chan types.UID
	stop    func()
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "dev") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &node{t: t, dir: dir}
	n.start()
	t.Cleanup(func() { n.stop() })
	return n
}

func (n *node) start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // outlives the test's context: stop ends it
	n.changed, n.touched = make(chan struct{}, 1), make(chan types.UID, 100)
	changed, touched := n.changed, n.touched
	m, err := New(ctx, Config{Dir: n.dir, Logger: slog.New(slog.NewTextHandler(n.t.Output(), nil)), Affected: func(uid types.UID) { touched <- uid },
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
	if err != nil {
		n.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	n.Manager, n.stop = m, func() {
		if cancel(); ctx.Err() != nil && done != nil {
			if err := <-done; err != nil {
				n.t.Error(err)
			}
			done = nil
		}
	}
}

// counts waits until the node offers these: "healthy/all".
func (n *node) counts(want string) {
	n.t.Helper()
	for {
		capacity, allocatable := n.Counts()
		all, healthy := capacity[gpu], allocatable[gpu]
		if got := healthy.String() + "/" + all.String(); got == want {
			return
		}
		select {
		case <-n.changed:
		case <-n.t.Context().Done():
			n.t.Fatalf("never %s", want)
		}
	}
}

// plugin serves and registers.
func (n *node) plugin(p *devicestest.Plugin) (stop func()) {
	n.t.Helper()
	stop = p.Serve(n.t, n.dir, "p.sock")
	if err := p.Register(n.t.Context(), n.dir, "p.sock"); err != nil {
		n.t.Fatal(err)
	}
	return stop
}

func asking(uid string, counts ...int64) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: uid}}
	for i, count := range counts {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{gpu: *resource.NewQuantity(count, resource.DecimalSI), "example.com/other": resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("1")}}})
	}
	return pod
}

func env(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	return &pluginapi.ContainerAllocateResponse{
		Envs: map[string]string{"GPUS": strings.Join(ids, ",")}, Annotations: map[string]string{"example.com/ids": strings.Join(ids, ",")},
		Mounts:     []*pluginapi.Mount{{ContainerPath: "/lib/gpu", HostPath: "/opt/gpu", ReadOnly: true}},
		Devices:    []*pluginapi.DeviceSpec{{ContainerPath: "/dev/gpu", HostPath: "/dev/null", Permissions: "rw"}},
		CdiDevices: []*pluginapi.CDIDevice{{Name: "example.com/gpu=" + ids[0]}},
	}, nil
}

func (n *node) allocate(pod *corev1.Pod) string {
	n.t.Helper()
	if err := n.Allocate(n.t.Context(), pod); err != nil {
		return err.Error()
	}
	return ""
}

// TestAPluginsLife: it comes, its devices are given, it falls ill, goes, and comes back.
func TestAPluginsLife(t *testing.T) {
	n := newNode(t)
	p := devicestest.New(gpu, "a", "b", "!c")
	p.Response = env
	stop := n.plugin(p)
	n.counts("2/3")

	one := asking("one", 1)
	if why := n.allocate(one); why != "" {
		t.Fatal(why)
	}
	if why := n.allocate(one); why != "" { // again: nothing new
		t.Fatal(why)
	}
	given, err := n.Given(t.Context(), one, &one.Spec.Containers[0])
	if err != nil || len(given.Envs) != 1 || string(given.Envs[0].Value) != "a" || given.Mounts[0].HostPath != "/opt/gpu" || !given.Mounts[0].Readonly ||
		given.Devices[0].Permissions != "rw" || given.Annotations["example.com/ids"] != "a" || given.CDI[0] != "example.com/gpu=a" {
		t.Errorf("%+v %v", given, err)
	}
	if diff := cmp.Diff([]string{"Allocate a"}, p.Calls()); diff != "" {
		t.Error(diff)
	}
	if why := n.allocate(asking("two", 2)); why != "Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1, which is unexpected" {
		t.Error(why)
	}
	if why := n.allocate(asking("three", 1, 1)); !strings.Contains(why, "Requested: 1, Available: 0") {
		t.Error(why) // the first container had one, and gave it back:
	}
	if why := n.allocate(asking("four", 1)); why != "" {
		t.Error(why)
	}
	n.Free("four")

	p.Set("!a", "b", "c")
	n.counts("2/3")
	if uid := <-n.touched; uid != "one" {
		t.Error(uid)
	}
	want := []corev1.ResourceStatus{{Name: gpu, Resources: []corev1.ResourceHealth{{ResourceID: "a", Health: corev1.ResourceHealthStatusUnhealthy}}}}
	if diff := cmp.Diff(want, n.Status("one", "c0")); diff != "" {
		t.Error(diff)
	}
	stop()
	n.counts("0/3")
	if why := n.allocate(asking("five", 1)); !strings.Contains(why, "no healthy devices present") {
		t.Error(why)
	}
	if given, err := n.Given(t.Context(), one, &one.Spec.Containers[0]); err != nil || len(given.Envs) != 1 { // what it has it keeps
		t.Errorf("%+v %v", given, err)
	}
	p.Set("a", "b")
	n.plugin(p)
	n.counts("2/2")
}

// TestAnAgentIsReplaced: what pods have stays theirs, and what the Node offers is zero until plugins are back.
// TestPodsThatComeTogether: each device is one pod's, however the turns fall.
func TestPodsThatComeTogether(t *testing.T) {
	n := newNode(t)
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	p := devicestest.New(gpu, ids...)
	p.Response = env
	n.plugin(p)
	n.counts("8/8")
	for round := range 50 {
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				if why := n.allocate(asking(fmt.Sprintf("%d-%d", round, i), 1)); why != "" {
					t.Error(why)
				}
			})
		}
		all.Wait()
		given := map[string]bool{}
		for i := range ids {
			pod := types.UID(fmt.Sprintf("%d-%d", round, i))
			for _, share := range n.Shares(pod, "c0") {
				for _, id := range share.IDs() {
					given[id] = true
				}
			}
			n.Free(pod)
		}
		if len(given) != len(ids) {
			t.Fatalf("%d pods have %d devices", len(ids), len(given))
		}
	}
}

func TestAnAgentIsReplaced(t *testing.T) {
	n := newNode(t)
	if !n.Fresh() {
		t.Error("it has a record")
	}
	p := devicestest.New(gpu, "a", "b")
	p.Response = env
	p.Options.PreStartRequired = true
	n.plugin(p)
	n.counts("2/2")
	one := asking("one", 1)
	if why := n.allocate(one); why != "" {
		t.Fatal(why)
	}
	n.stop()
	n.start()
	if n.Fresh() {
		t.Error("it has no record")
	}
	n.counts("0/0")
	if got := n.Status("one", "c0"); got[0].Resources[0].Health != corev1.ResourceHealthStatusUnknown {
		t.Error(got)
	}
	if why := n.allocate(asking("two", 1)); !strings.Contains(why, "no healthy devices present; cannot allocate unhealthy devices example.com/gpu") {
		t.Error(why)
	}
	if why := n.allocate(one); why != "" { // it has its device
		t.Error(why)
	}
	p2 := devicestest.New(gpu, "a", "b")
	p2.Response, p2.Options.PreStartRequired = env, true
	n.plugin(p2)
	n.counts("2/2")
	if given, err := n.Given(t.Context(), one, &one.Spec.Containers[0]); err != nil || string(given.Envs[0].Value) != "a" {
		t.Errorf("%+v %v", given, err)
	}
	if diff := cmp.Diff([]string{"PreStart a"}, p2.Calls()); diff != "" {
		t.Error(diff)
	}
	if why := n.allocate(asking("two", 2)); !strings.Contains(why, "Available: 1") {
		t.Error(why)
	}
	n.Retain(func(uid types.UID) bool { return uid != "one" })
	if why := n.allocate(asking("two", 2)); why != "" {
		t.Error(why)
	}
}

func TestThePluginPrefers(t *testing.T) {
	n := newNode(t)
	p := devicestest.New(gpu, "a", "b", "c")
	p.Response = env
	p.Options.GetPreferredAllocationAvailable = true
	p.Prefer = func([]string) []string { return []string{"c", "x"} }
	n.plugin(p)
	n.counts("3/3")
	if why := n.allocate(asking("one", 1)); why != "" {
		t.Fatal(why)
	}
	if diff := cmp.Diff([]string{"Prefer 1 of a b c", "Allocate c"}, p.Calls()); diff != "" {
		t.Error(diff)
	}
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	n := newNode(t)
	for name, test := range map[string]struct {
		request *pluginapi.RegisterRequest
		want    string
	}{
		"version":       {&pluginapi.RegisterRequest{Version: "v1alpha", Endpoint: "p.sock", ResourceName: gpu}, `requested API version "v1alpha" is not supported`},
		"name":          {&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "p.sock", ResourceName: "gpu"}, `the ResourceName "gpu" is invalid`},
		"own name":      {&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "p.sock", ResourceName: "kubernetes.io/gpu"}, `is invalid`},
		"other folders": {&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "../p.sock", ResourceName: gpu}, `is not the name of a socket`},
		"our socket":    {&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "kubelet.sock", ResourceName: gpu}, `is not the name of a socket`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := devicestest.Register(t.Context(), n.dir, test.request); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %s", err, test.want)
			}
		})
	}
	if err := n.Validate("example.com/gpu", "", []string{"v1"}); err == nil {
		t.Error("a version that nobody speaks")
	}
}

// TestAPluginThatTalksNonsense is left, and what it answers is not used.
func TestAPluginThatTalksNonsense(t *testing.T) {
	n := newNode(t)
	p := devicestest.New(gpu, "a")
	n.plugin(p)
	n.counts("1/1")
	for name, test := range map[string]struct {
		response *pluginapi.ContainerAllocateResponse
		want     string
	}{
		"path":        {&pluginapi.ContainerAllocateResponse{Mounts: []*pluginapi.Mount{{ContainerPath: "/a/../../b", HostPath: "/x"}}}, "leads upwards"},
		"device":      {&pluginapi.ContainerAllocateResponse{Devices: []*pluginapi.DeviceSpec{{ContainerPath: "dev/a", HostPath: "/dev/null"}}}, "is not absolute"},
		"permissions": {&pluginapi.ContainerAllocateResponse{Devices: []*pluginapi.DeviceSpec{{ContainerPath: "/a", HostPath: "/dev/null", Permissions: "rwx"}}}, "are not of r, w and m"},
		"variable":    {&pluginapi.ContainerAllocateResponse{Envs: map[string]string{"A=B": ""}}, "is not the name of a variable"},
		"size":        {&pluginapi.ContainerAllocateResponse{Envs: map[string]string{"A": strings.Repeat("x", responseBytesMax)}}, "has more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p.Response = func([]string) (*pluginapi.ContainerAllocateResponse, error) { return test.response, nil }
			if why := n.allocate(asking("one", 1)); !strings.Contains(why, test.want) {
				t.Errorf("%s, not %s", why, test.want)
			}
		})
	}
	p.Response = nil
	if why := n.allocate(asking("one", 1)); !strings.Contains(why, "no containers return in allocation response") {
		t.Error(why)
	}
	p.Response = func([]string) (*pluginapi.ContainerAllocateResponse, error) { return nil, errors.New("broken") }
	if why := n.allocate(asking("one", 1)); !strings.Contains(why, "broken") {
		t.Error(why)
	}
	p.Response = env
	if why := n.allocate(asking("one", 1)); why != "" {
		t.Error(why)
	}
	p.Set("a", strings.Repeat("x", 254))
	n.counts("0/1")
}

func TestAPluginThatWasFoundByItsSocket(t *testing.T) {
	n := newNode(t)
	p := devicestest.New(gpu, "a")
	p.Serve(t, n.dir, "x.sock")
	if err := n.Validate(gpu, "", []string{"v1beta1"}); err != nil {
		t.Fatal(err)
	}
	if err := n.Register(t.Context(), gpu, filepath.Join(n.dir, "x.sock"), nil); err != nil {
		t.Fatal(err)
	}
	n.counts("1/1")
	n.Deregister(gpu, "another")
	n.Deregister(gpu, filepath.Join(n.dir, "x.sock"))
	n.counts("0/1")
}

func TestARecordThatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, checkpointName), []byte(`{"Data":{},"Checksum":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{Dir: dir}); !errors.Is(err, ledger.ErrDamaged) {
		t.Error(err)
	}
}

func TestAPluginThatDoesNotComeBack(t *testing.T) {
	s := &stock{devices: map[string]ledger.Device{"a": {ID: "a", Healthy: true}}, plugin: &plugin{}}
	begin := time.Now()
	if s.expired(begin.Add(gracePeriod)) {
		t.Error("it is there")
	}
	s.leave(begin)
	all, healthy := s.count()
	if all.Value() != 1 || healthy.Value() != 0 || s.expired(begin.Add(gracePeriod-1)) || !s.expired(begin.Add(gracePeriod)) {
		t.Errorf("%v %v", all, healthy)
	}
}

// TestDevicesOfANode: hints say where the devices are, and a container gets those near to it.
func TestDevicesOfANode(t *testing.T) {
	n := newNode(t)
	p := devicestest.New(gpu, "a", "b", "c")
	p.Response = env
	n.plugin(p)
	n.counts("3/3")
	n.mu.Lock()
	for id, at := range map[string]int64{"a": 0, "b": 1, "c": 1} {
		n.stocks[gpu].devices[id] = ledger.Device{ID: id, Healthy: true, NUMA: []int64{at}}
	}
	n.mu.Unlock()
	pod, machine := asking("one", 2, 1), topology.NodesOf(0, 1)
	both, second := topology.Hint{Nodes: machine}, topology.Hint{Nodes: topology.NodesOf(1), Preferred: true}
	if diff := cmp.Diff(topology.Hints{gpu: {second, both}}, n.Hints(pod, &pod.Spec.Containers[0], machine)); diff != "" {
		t.Error(diff)
	}
	both.Preferred = true
	if diff := cmp.Diff(topology.Hints{gpu: {both}}, n.PodHints(pod, machine)); diff != "" {
		t.Error(diff)
	}
	if err := n.AllocateContainer(t.Context(), pod, &pod.Spec.Containers[0], second.Nodes); err != nil {
		t.Fatal(err)
	}
	if ids := n.Shares("one", "c0")[0].IDs(); !slices.Equal(ids, []string{"b", "c"}) {
		t.Error(ids)
	}
	const want = "Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1, which is unexpected"
	if err := n.AllocateContainer(t.Context(), asking("two", 2), &pod.Spec.Containers[0], 0); err == nil || err.Error() != want {
		t.Error(err)
	}
}
