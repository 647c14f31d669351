package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	criclient "k8s.io/cri-client/pkg"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

// Config names the runtime.
type Config struct {
	// Endpoint is the absolute socket of the runtime service, "unix:///run/containerd/containerd.sock".
	Endpoint string
	// ImageEndpoint is the socket of the image service; empty means Endpoint.
	ImageEndpoint string
	// ConnectTimeout bounds connecting and each call without a deadline of its own; zero means ConnectTimeoutDefault.
	ConnectTimeout time.Duration
}

// ConnectTimeoutDefault is upstream kubelet's runtime request timeout.
const ConnectTimeoutDefault = 2 * time.Minute

// ErrNoEndpoint says that Config.Endpoint is empty.
var ErrNoEndpoint = errors.New("remote runtime: no endpoint configured")

// client joins both services; Close is the only method they share.
type client struct {
	internalapi.RuntimeService
	images internalapi.ImageManagerService
	imageMethods
}

// imageMethods is the image service without Close, so that embedding it beside the runtime service is unambiguous.
type imageMethods interface {
	imageLister
	imageMover
}

// New connects to the runtime and fails when nothing answers there.
func New(ctx context.Context, config Config) (cri.Runtime, error) {
	if config.Endpoint == "" {
		return nil, ErrNoEndpoint
	}
	if config.ImageEndpoint == "" {
		config.ImageEndpoint = config.Endpoint
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = ConnectTimeoutDefault
	}
	runtime, err := criclient.NewRemoteRuntimeService(ctx, config.Endpoint, config.ConnectTimeout, nil, false)
	if err != nil {
		return nil, fmt.Errorf("connect to runtime %s: %w", config.Endpoint, err)
	}
	images, err := criclient.NewRemoteImageService(ctx, config.ImageEndpoint, config.ConnectTimeout, nil, false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to image service %s: %w", config.ImageEndpoint, err), runtime.Close(ctx))
	}
	return &client{RuntimeService: runtime, images: images, imageMethods: images}, nil
}

// Close releases both connections.
func (c *client) Close(ctx context.Context) error {
	return errors.Join(c.RuntimeService.Close(ctx), c.images.Close(ctx))
}
