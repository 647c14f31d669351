package podresources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	alpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

const (
	// callsPerSecond and callsBurst bound the calls of all clients. Upstream's.
	callsPerSecond = 100
	callsBurst     = 10
	// requestBytesMax bounds a request, which has two names at most.
	requestBytesMax = 16 << 10
)

// Devices are those of device plugins.
type Devices interface {
	// Shares are what a container has.
	Shares(pod types.UID, container string) []ledger.Share
	// Devices are all, by resource.
	Devices() map[string][]ledger.Device
}

// Pinning are the CPUs and the memory that containers have for themselves.
type Pinning interface {
	CPUs(pod types.UID, container string) []int64
	Memory(pod types.UID, container string) []memory.Block
	// AllocatableCPUs and AllocatableMemory are what all containers can have.
	AllocatableCPUs() []int64
	AllocatableMemory() []memory.Block
}

// Config of Run; all of it but Pinning is required.
type Config struct {
	// Socket is the path at which it answers.
	Socket string
	// Pods are those of the node.
	Pods    func() []*corev1.Pod
	Devices Devices
	// Pinning may be nil: nobody has CPUs or memory of its own.
	Pinning Pinning
	// Claims are those that a container uses.
	Claims func(pod *corev1.Pod, c *corev1.Container) []*api.DynamicResource
}

// Run answers until ctx ends. The error is about the socket.
func Run(ctx context.Context, cfg Config) error {
	if err := os.Remove(cfg.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pod resources: %w", err)
	}
	listener, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		return fmt.Errorf("pod resources: %w", err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(requestBytesMax), grpc.UnaryInterceptor(limit()))
	api.RegisterPodResourcesListerServer(server, &service{Config: cfg})
	alpha.RegisterPodResourcesListerServer(server, &former{of: &service{Config: cfg}})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("pod resources: %w", err)
	}
	return nil
}

// limit refuses what is too much.
func limit() grpc.UnaryServerInterceptor {
	limiter := flowcontrol.NewTokenBucketRateLimiter(callsPerSecond, callsBurst)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if !limiter.TryAccept() {
			return nil, status.Errorf(codes.ResourceExhausted, "rejected by rate limit: more than %d calls in a second", callsPerSecond)
		}
		return handle(ctx, request)
	}
}

type service struct {
	api.UnimplementedPodResourcesListerServer
	Config
}

// List tells of all pods that have not ended.
func (s *service) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	answer := &api.ListPodResourcesResponse{}
	for _, pod := range s.Pods() {
		if active(pod) {
			answer.PodResources = append(answer.PodResources, s.ofPod(pod))
		}
	}
	return answer, nil
}

// Get tells of one.
func (s *service) Get(_ context.Context, r *api.GetPodResourcesRequest) (*api.GetPodResourcesResponse, error) {
	for _, pod := range s.Pods() {
		if pod.Name == r.PodName && pod.Namespace == r.PodNamespace && active(pod) {
			return &api.GetPodResourcesResponse{PodResources: s.ofPod(pod)}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s in namespace %s not found", r.PodName, r.PodNamespace)
}

// GetAllocatableResources tells of all healthy devices, CPUs and memory that containers can have, whether somebody has them or not.
func (s *service) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (*api.AllocatableResourcesResponse, error) {
	answer := &api.AllocatableResourcesResponse{}
	all := s.Devices.Devices()
	for _, resource := range slices.Sorted(maps.Keys(all)) {
		for _, d := range all[resource] {
			if d.Healthy {
				answer.Devices = append(answer.Devices, deviceOf(resource, d))
			}
		}
	}
	if s.Pinning != nil {
		answer.CpuIds, answer.Memory = s.Pinning.AllocatableCPUs(), memoryOf(s.Pinning.AllocatableMemory())
	}
	return answer, nil
}

func active(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// ofPod tells of the containers that run as long as the pod does.
func (s *service) ofPod(pod *corev1.Pod) *api.PodResources {
	out := &api.PodResources{Name: pod.Name, Namespace: pod.Namespace}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out.Containers = append(out.Containers, s.ofContainer(pod, c))
		}
	}
	for i := range pod.Spec.Containers {
		out.Containers = append(out.Containers, s.ofContainer(pod, &pod.Spec.Containers[i]))
	}
	return out
}

func (s *service) ofContainer(pod *corev1.Pod, c *corev1.Container) *api.ContainerResources {
	out := &api.ContainerResources{Name: c.Name, DynamicResources: s.Claims(pod, c)}
	for _, share := range s.Devices.Shares(pod.UID, c.Name) {
		for _, d := range share.Devices {
			out.Devices = append(out.Devices, deviceOf(share.Resource, d))
		}
	}
	if s.Pinning != nil {
		out.CpuIds, out.Memory = s.Pinning.CPUs(pod.UID, c.Name), memoryOf(s.Pinning.Memory(pod.UID, c.Name))
	}
	return out
}

func memoryOf(blocks []memory.Block) []*api.ContainerMemory {
	var out []*api.ContainerMemory
	for _, b := range blocks {
		one := &api.ContainerMemory{MemoryType: string(b.Type), Size: b.Size, Topology: &api.TopologyInfo{}}
		for _, id := range b.Nodes {
			one.Topology.Nodes = append(one.Topology.Nodes, &api.NUMANode{ID: int64(id)})
		}
		out = append(out, one)
	}
	return out
}

// deviceOf is one device, as a kubelet tells of each by itself.
func deviceOf(resource string, d ledger.Device) *api.ContainerDevices {
	out := &api.ContainerDevices{ResourceName: resource, DeviceIds: []string{d.ID}}
	for _, node := range d.NUMA {
		if out.Topology == nil {
			out.Topology = &api.TopologyInfo{}
		}
		out.Topology.Nodes = append(out.Topology.Nodes, &api.NUMANode{ID: node})
	}
	return out
}
