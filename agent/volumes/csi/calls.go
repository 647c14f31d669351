package csi

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CallTimeout is how long a driver may take for one call. It may go on with it; the call is made again. Upstream's.
const CallTimeout = 2 * time.Minute

// call makes one call with its limit.
func call[Request, Response any](
	ctx context.Context, method func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request,
) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return method(ctx, request)
}

// uncertain tells whether the driver may have done, or may be doing, what was asked of it. Upstream's list.
func uncertain(err error) bool {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return true
	}
	return false
}
