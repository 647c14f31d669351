package serve

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

// runtimeServer carries each call to the runtime. Streams end with ending.
type runtimeServer struct {
	runtimeapi.UnsafeRuntimeServiceServer
	runtime cri.Runtime
	ending  context.Context
}

// answer gives a call its answer, or its error alone.
func answer[T any](response *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (s *runtimeServer) Version(ctx context.Context, req *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return s.runtime.Version(ctx, req.GetVersion())
}

func (s *runtimeServer) Status(ctx context.Context, req *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return s.runtime.Status(ctx, req.GetVerbose())
}

func (s *runtimeServer) RuntimeConfig(
	ctx context.Context, _ *runtimeapi.RuntimeConfigRequest,
) (*runtimeapi.RuntimeConfigResponse, error) {
	return s.runtime.RuntimeConfig(ctx)
}

func (s *runtimeServer) UpdateRuntimeConfig(
	ctx context.Context, req *runtimeapi.UpdateRuntimeConfigRequest,
) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return answer(&runtimeapi.UpdateRuntimeConfigResponse{}, s.runtime.UpdateRuntimeConfig(ctx, req.GetRuntimeConfig()))
}

func (s *runtimeServer) RunPodSandbox(
	ctx context.Context, req *runtimeapi.RunPodSandboxRequest,
) (*runtimeapi.RunPodSandboxResponse, error) {
	id, err := s.runtime.RunPodSandbox(ctx, req.GetConfig(), req.GetRuntimeHandler())
	return answer(&runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, err)
}

func (s *runtimeServer) StopPodSandbox(
	ctx context.Context, req *runtimeapi.StopPodSandboxRequest,
) (*runtimeapi.StopPodSandboxResponse, error) {
	return answer(&runtimeapi.StopPodSandboxResponse{}, s.runtime.StopPodSandbox(ctx, req.GetPodSandboxId()))
}

func (s *runtimeServer) RemovePodSandbox(
	ctx context.Context, req *runtimeapi.RemovePodSandboxRequest,
) (*runtimeapi.RemovePodSandboxResponse, error) {
	return answer(&runtimeapi.RemovePodSandboxResponse{}, s.runtime.RemovePodSandbox(ctx, req.GetPodSandboxId()))
}

func (s *runtimeServer) PodSandboxStatus(
	ctx context.Context, req *runtimeapi.PodSandboxStatusRequest,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	return s.runtime.PodSandboxStatus(ctx, req.GetPodSandboxId(), req.GetVerbose())
}

func (s *runtimeServer) ListPodSandbox(
	ctx context.Context, req *runtimeapi.ListPodSandboxRequest,
) (*runtimeapi.ListPodSandboxResponse, error) {
	items, err := s.runtime.ListPodSandbox(ctx, req.GetFilter())
	return answer(&runtimeapi.ListPodSandboxResponse{Items: items}, err)
}

func (s *runtimeServer) UpdatePodSandboxResources(
	ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest,
) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return s.runtime.UpdatePodSandboxResources(ctx, req)
}

func (s *runtimeServer) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return s.runtime.PortForward(ctx, req)
}

func (s *runtimeServer) CreateContainer(
	ctx context.Context, req *runtimeapi.CreateContainerRequest,
) (*runtimeapi.CreateContainerResponse, error) {
	id, err := s.runtime.CreateContainer(ctx, req.GetPodSandboxId(), req.GetConfig(), req.GetSandboxConfig())
	return answer(&runtimeapi.CreateContainerResponse{ContainerId: id}, err)
}

func (s *runtimeServer) StartContainer(
	ctx context.Context, req *runtimeapi.StartContainerRequest,
) (*runtimeapi.StartContainerResponse, error) {
	return answer(&runtimeapi.StartContainerResponse{}, s.runtime.StartContainer(ctx, req.GetContainerId()))
}

func (s *runtimeServer) StopContainer(
	ctx context.Context, req *runtimeapi.StopContainerRequest,
) (*runtimeapi.StopContainerResponse, error) {
	return answer(&runtimeapi.StopContainerResponse{}, s.runtime.StopContainer(ctx, req.GetContainerId(), req.GetTimeout()))
}

func (s *runtimeServer) RemoveContainer(
	ctx context.Context, req *runtimeapi.RemoveContainerRequest,
) (*runtimeapi.RemoveContainerResponse, error) {
	return answer(&runtimeapi.RemoveContainerResponse{}, s.runtime.RemoveContainer(ctx, req.GetContainerId()))
}

func (s *runtimeServer) ListContainers(
	ctx context.Context, req *runtimeapi.ListContainersRequest,
) (*runtimeapi.ListContainersResponse, error) {
	containers, err := s.runtime.ListContainers(ctx, req.GetFilter())
	return answer(&runtimeapi.ListContainersResponse{Containers: containers}, err)
}

func (s *runtimeServer) ContainerStatus(
	ctx context.Context, req *runtimeapi.ContainerStatusRequest,
) (*runtimeapi.ContainerStatusResponse, error) {
	return s.runtime.ContainerStatus(ctx, req.GetContainerId(), req.GetVerbose())
}

func (s *runtimeServer) UpdateContainerResources(
	ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	resources := &runtimeapi.ContainerResources{Linux: req.GetLinux(), Windows: req.GetWindows()}
	err := s.runtime.UpdateContainerResources(ctx, req.GetContainerId(), resources)
	return answer(&runtimeapi.UpdateContainerResourcesResponse{}, err)
}

func (s *runtimeServer) ReopenContainerLog(
	ctx context.Context, req *runtimeapi.ReopenContainerLogRequest,
) (*runtimeapi.ReopenContainerLogResponse, error) {
	return answer(&runtimeapi.ReopenContainerLogResponse{}, s.runtime.ReopenContainerLog(ctx, req.GetContainerId()))
}

// ExecSync answers with the exit code of a command that failed: on the wire that is no error.
func (s *runtimeServer) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if req.GetTimeout() < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "timeout %d is negative", req.GetTimeout())
	}
	timeout := time.Duration(req.GetTimeout()) * time.Second
	stdout, stderr, err := s.runtime.ExecSync(ctx, req.GetContainerId(), req.GetCmd(), timeout)
	response := &runtimeapi.ExecSyncResponse{Stdout: stdout, Stderr: stderr}
	if failed, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		response.ExitCode = int32(failed.Code)
		return response, nil
	}
	return answer(response, err)
}

func (s *runtimeServer) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return s.runtime.Exec(ctx, req)
}

func (s *runtimeServer) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return s.runtime.Attach(ctx, req)
}

func (s *runtimeServer) ContainerStats(
	ctx context.Context, req *runtimeapi.ContainerStatsRequest,
) (*runtimeapi.ContainerStatsResponse, error) {
	stats, err := s.runtime.ContainerStats(ctx, req.GetContainerId())
	return answer(&runtimeapi.ContainerStatsResponse{Stats: stats}, err)
}

func (s *runtimeServer) ListContainerStats(
	ctx context.Context, req *runtimeapi.ListContainerStatsRequest,
) (*runtimeapi.ListContainerStatsResponse, error) {
	stats, err := s.runtime.ListContainerStats(ctx, req.GetFilter())
	return answer(&runtimeapi.ListContainerStatsResponse{Stats: stats}, err)
}

func (s *runtimeServer) PodSandboxStats(
	ctx context.Context, req *runtimeapi.PodSandboxStatsRequest,
) (*runtimeapi.PodSandboxStatsResponse, error) {
	stats, err := s.runtime.PodSandboxStats(ctx, req.GetPodSandboxId())
	return answer(&runtimeapi.PodSandboxStatsResponse{Stats: stats}, err)
}

func (s *runtimeServer) ListPodSandboxStats(
	ctx context.Context, req *runtimeapi.ListPodSandboxStatsRequest,
) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	stats, err := s.runtime.ListPodSandboxStats(ctx, req.GetFilter())
	return answer(&runtimeapi.ListPodSandboxStatsResponse{Stats: stats}, err)
}

func (s *runtimeServer) ListMetricDescriptors(
	ctx context.Context, _ *runtimeapi.ListMetricDescriptorsRequest,
) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	descriptors, err := s.runtime.ListMetricDescriptors(ctx)
	return answer(&runtimeapi.ListMetricDescriptorsResponse{Descriptors: descriptors}, err)
}

func (s *runtimeServer) ListPodSandboxMetrics(
	ctx context.Context, _ *runtimeapi.ListPodSandboxMetricsRequest,
) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	metrics, err := s.runtime.ListPodSandboxMetrics(ctx)
	return answer(&runtimeapi.ListPodSandboxMetricsResponse{PodMetrics: metrics}, err)
}

func (s *runtimeServer) CheckpointContainer(
	ctx context.Context, req *runtimeapi.CheckpointContainerRequest,
) (*runtimeapi.CheckpointContainerResponse, error) {
	return answer(&runtimeapi.CheckpointContainerResponse{}, s.runtime.CheckpointContainer(ctx, req))
}

func (s *runtimeServer) CheckpointPod(
	ctx context.Context, req *runtimeapi.CheckpointPodRequest,
) (*runtimeapi.CheckpointPodResponse, error) {
	return answer(&runtimeapi.CheckpointPodResponse{}, s.runtime.CheckpointPod(ctx, req))
}

func (s *runtimeServer) RestorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return s.runtime.RestorePod(ctx, req)
}
