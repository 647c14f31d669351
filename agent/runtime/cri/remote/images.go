package remote

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type imageLister interface {
	ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error)
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error)
	ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
}

type imageMover interface {
	PullImage(
		ctx context.Context,
		image *runtimeapi.ImageSpec,
		auth *runtimeapi.AuthConfig,
		podSandboxConfig *runtimeapi.PodSandboxConfig,
	) (string, error)
	RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error
}
