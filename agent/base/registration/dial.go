package registration

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// answerBytesMax bounds each answer of a plugin.
const answerBytesMax = 4 << 20

// Dial speaks to a plugin by its socket. It connects with the first call.
func Dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerBytesMax)))
}
