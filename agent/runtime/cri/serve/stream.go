package serve

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// chunkItems is how many items of a streamed list share a message.
const chunkItems = 100

// send streams a list in messages of at most chunkItems items, and none if it is empty.
func send[T, R any](stream grpc.ServerStreamingServer[R], items []T, err error, message func([]T) *R) error {
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(items, chunkItems) {
		if err := stream.Send(message(chunk)); err != nil {
			return err
		}
	}
	return nil
}

func (s *runtimeServer) StreamPodSandboxes(
	req *runtimeapi.StreamPodSandboxesRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxesResponse],
) error {
	items, err := s.runtime.ListPodSandbox(stream.Context(), req.GetFilter())
	return send(stream, items, err, func(chunk []*runtimeapi.PodSandbox) *runtimeapi.StreamPodSandboxesResponse {
		return &runtimeapi.StreamPodSandboxesResponse{PodSandboxes: chunk}
	})
}

func (s *runtimeServer) StreamContainers(
	req *runtimeapi.StreamContainersRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse],
) error {
	items, err := s.runtime.ListContainers(stream.Context(), req.GetFilter())
	return send(stream, items, err, func(chunk []*runtimeapi.Container) *runtimeapi.StreamContainersResponse {
		return &runtimeapi.StreamContainersResponse{Containers: chunk}
	})
}

func (s *runtimeServer) StreamContainerStats(
	req *runtimeapi.StreamContainerStatsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamContainerStatsResponse],
) error {
	items, err := s.runtime.ListContainerStats(stream.Context(), req.GetFilter())
	return send(stream, items, err, func(chunk []*runtimeapi.ContainerStats) *runtimeapi.StreamContainerStatsResponse {
		return &runtimeapi.StreamContainerStatsResponse{ContainerStats: chunk}
	})
}

func (s *runtimeServer) StreamPodSandboxStats(
	req *runtimeapi.StreamPodSandboxStatsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxStatsResponse],
) error {
	items, err := s.runtime.ListPodSandboxStats(stream.Context(), req.GetFilter())
	return send(stream, items, err, func(chunk []*runtimeapi.PodSandboxStats) *runtimeapi.StreamPodSandboxStatsResponse {
		return &runtimeapi.StreamPodSandboxStatsResponse{PodSandboxStats: chunk}
	})
}

func (s *runtimeServer) StreamPodSandboxMetrics(
	_ *runtimeapi.StreamPodSandboxMetricsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxMetricsResponse],
) error {
	items, err := s.runtime.ListPodSandboxMetrics(stream.Context())
	return send(stream, items, err, func(chunk []*runtimeapi.PodSandboxMetrics) *runtimeapi.StreamPodSandboxMetricsResponse {
		return &runtimeapi.StreamPodSandboxMetricsResponse{PodSandboxMetrics: chunk}
	})
}

func (s imageServer) StreamImages(
	req *runtimeapi.StreamImagesRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamImagesResponse],
) error {
	items, err := s.calls.runtime.ListImages(stream.Context(), req.GetFilter())
	return send(stream, items, err, func(chunk []*runtimeapi.Image) *runtimeapi.StreamImagesResponse {
		return &runtimeapi.StreamImagesResponse{Images: chunk}
	})
}

// GetContainerEvents sends events until the client leaves, the server ends, or the client is too slow, after which it
// must list again.
func (s *runtimeServer) GetContainerEvents(
	_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse],
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	events := make(chan *runtimeapi.ContainerEventResponse)
	ended := make(chan error, 1)
	go func() { ended <- s.runtime.GetContainerEvents(ctx, events, nil) }()
	for {
		select {
		case event := <-events:
			if err := stream.Send(event); err != nil {
				cancel()
				<-ended
				return err
			}
		case err := <-ended:
			if s.ending.Err() != nil {
				return status.Error(codes.Unavailable, "the runtime's socket is closing")
			}
			return err
		}
	}
}
