package serve

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageServer is a type of its own because both services have an Unsafe part.
type imageServer struct {
	runtimeapi.UnsafeImageServiceServer
	calls *runtimeServer
}

func (s imageServer) ListImages(ctx context.Context, req *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	images, err := s.calls.runtime.ListImages(ctx, req.GetFilter())
	return answer(&runtimeapi.ListImagesResponse{Images: images}, err)
}

func (s imageServer) ImageStatus(ctx context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return s.calls.runtime.ImageStatus(ctx, req.GetImage(), req.GetVerbose())
}

func (s imageServer) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	id, err := s.calls.runtime.PullImage(ctx, req.GetImage(), req.GetAuth(), req.GetSandboxConfig())
	return answer(&runtimeapi.PullImageResponse{ImageRef: id}, err)
}

func (s imageServer) RemoveImage(ctx context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	return answer(&runtimeapi.RemoveImageResponse{}, s.calls.runtime.RemoveImage(ctx, req.GetImage()))
}

func (s imageServer) ImageFsInfo(ctx context.Context, _ *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return s.calls.runtime.ImageFsInfo(ctx)
}
