package streams

import (
	"sync"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// FollowSizes applies sizes until the channel closes or stop is called.
func FollowSizes(sizes <-chan remotecommand.TerminalSize, apply func(remotecommand.TerminalSize)) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		for {
			select {
			case size, open := <-sizes:
				if !open {
					return
				}
				apply(size)
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}
