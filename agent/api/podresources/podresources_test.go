package podresources

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	alpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

const gpu = "example.com/gpu"

type devices struct{ *ledger.Ledger }

func (d devices) Shares(pod types.UID, container string) []ledger.Share { return d.Of(pod, container) }

func (d devices) Devices() map[string][]ledger.Device {
	return map[string][]ledger.Device{gpu: {{ID: "a", Healthy: true, NUMA: []int64{0, 1}}, {ID: "b", Healthy: true}, {ID: "c"}}}
}

// pins are of the main container of pod p.
type pins struct{}

func (pins) CPUs(pod types.UID, container string) []int64 {
	if pod == "p" && container == "main" {
		return []int64{1, 3}
	}
	return nil
}

func (pins) Memory(pod types.UID, container string) []memory.Block {
	if pod == "p" && container == "main" {
		return []memory.Block{{Nodes: []int{0, 1}, Type: corev1.ResourceMemory, Size: 7}}
	}
	return nil
}

func (pins) AllocatableCPUs() []int64 { return []int64{1, 2, 3} }

func (pins) AllocatableMemory() []memory.Block {
	return []memory.Block{{Nodes: []int{1}, Type: corev1.ResourceMemory, Size: 9}}
}

// asked runs it over a socket of the test, with a file there that an earlier one left.
func asked(t *testing.T, pods ...*corev1.Pod) api.PodResourcesListerClient {
	return api.NewPodResourcesListerClient(dialled(t, pods...))
}

func dialled(t *testing.T, pods ...*corev1.Pod) *grpc.ClientConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "res") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "kubelet.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := ledger.New()
	for _, container := range []string{"init", "side", "main"} {
		l.Put(ledger.Share{Key: ledger.Key{Pod: "p", Container: container, Resource: gpu}, Devices: []ledger.Device{{ID: "a", NUMA: []int64{1}}, {ID: "b"}}})
	}
	ctx, cancel := context.WithCancel(context.Background()) // outlives the test's context: the cleanup ends it
	done := make(chan error)
	go func() {
		done <- Run(ctx, Config{Socket: socket, Pods: func() []*corev1.Pod { return pods }, Devices: devices{l}, Pinning: pins{},
			Claims: func(pod *corev1.Pod, c *corev1.Container) []*api.DynamicResource {
				if pod.UID == "p" && c.Name == "main" {
					return []*api.DynamicResource{{ClaimName: "claim", ClaimNamespace: "ns"}}
				}
				return nil
			}})
	}()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func pod(name, uid string, phase corev1.PodPhase) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}, Status: corev1.PodStatus{Phase: phase},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}}, Containers: []corev1.Container{{Name: "main"}}}}
}

func TestWhoHasWhat(t *testing.T) {
	client := asked(t, pod("one", "p", corev1.PodRunning), pod("two", "q", corev1.PodPending), pod("done", "p", corev1.PodSucceeded))
	has := []*api.ContainerDevices{
		{ResourceName: gpu, DeviceIds: []string{"a"}, Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: 1}}}},
		{ResourceName: gpu, DeviceIds: []string{"b"}},
	}
	one := &api.PodResources{Name: "one", Namespace: "ns", Containers: []*api.ContainerResources{{Name: "side", Devices: has}, {Name: "main", Devices: has,
		CpuIds:           []int64{1, 3},
		Memory:           []*api.ContainerMemory{{MemoryType: "memory", Size: 7, Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: 0}, {ID: 1}}}}},
		DynamicResources: []*api.DynamicResource{{ClaimName: "claim", ClaimNamespace: "ns"}}}}}
	two := &api.PodResources{Name: "two", Namespace: "ns", Containers: []*api.ContainerResources{{Name: "side"}, {Name: "main"}}}
	list, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*api.PodResources{one, two}, list.PodResources, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	got, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "one", PodNamespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, got.PodResources, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"none", "done"} {
		if _, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: name, PodNamespace: "ns"}); status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheFormerVersion(t *testing.T) {
	conn := dialled(t, pod("one", "p", corev1.PodRunning))
	list, err := alpha.NewPodResourcesListerClient(conn).List(t.Context(), &alpha.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	has := []*alpha.ContainerDevices{{ResourceName: gpu, DeviceIds: []string{"a"}}, {ResourceName: gpu, DeviceIds: []string{"b"}}}
	want := []*alpha.PodResources{{Name: "one", Namespace: "ns", Containers: []*alpha.ContainerResources{{Name: "side", Devices: has}, {Name: "main", Devices: has}}}}
	if diff := cmp.Diff(want, list.PodResources, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatThereIs(t *testing.T) {
	got, err := asked(t).GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &api.AllocatableResourcesResponse{Devices: []*api.ContainerDevices{
		{ResourceName: gpu, DeviceIds: []string{"a"}, Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: 0}, {ID: 1}}}},
		{ResourceName: gpu, DeviceIds: []string{"b"}},
	}, CpuIds: []int64{1, 2, 3}, Memory: []*api.ContainerMemory{{MemoryType: "memory", Size: 9, Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: 1}}}}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// TestTooManyCalls: the burst passes, and something of a thousand calls at once does not.
func TestTooManyCalls(t *testing.T) {
	handle := limit()
	refused := 0
	for i := range 1000 {
		_, err := handle(t.Context(), nil, nil, func(context.Context, any) (any, error) { return nil, nil })
		if i < callsBurst && err != nil {
			t.Error(err)
		}
		if status.Code(err) == codes.ResourceExhausted {
			refused++
		}
	}
	if refused == 0 {
		t.Error("none was refused")
	}
}
