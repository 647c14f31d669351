package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// turns has calls come one after another: upstream's mock changes volumes that it has returned, while gRPC encodes them.
type turns struct{ mu sync.Mutex }

func (t *turns) take(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	response, err := handle(ctx, request)
	if err != nil {
		fmt.Fprintln(os.Stderr, info.FullMethod, request, err)
		return nil, err
	}
	return proto.Clone(response.(proto.Message)), nil
}
