package embedded

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/streams"
)

var (
	// ErrNotRoot says that namespaces, mounts and cgroups need privileges this process lacks.
	ErrNotRoot = errors.New("the embedded runtime needs root")
	// ErrClosed says that the runtime was closed.
	ErrClosed = streams.ErrClosed
)

func notFound(kind, id string) error {
	return status.Errorf(codes.NotFound, "%s %q not found", kind, id)
}

// coded gives an error the gRPC code by which CRI clients tell what to do about it.
func coded(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := codes.Unknown
	switch {
	case errors.Is(err, images.ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, images.ErrInvalidName), errors.Is(err, selinux.ErrInvalid):
		code = codes.InvalidArgument
	case errors.Is(err, selinux.ErrNoPolicy):
		code = codes.Unimplemented
	case errors.Is(err, network.ErrNoAddress):
		code = codes.ResourceExhausted
	case errors.Is(err, network.ErrNoPodCIDR):
		code = codes.FailedPrecondition
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, err.Error())
}
