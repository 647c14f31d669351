package images

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
)

// Limits of what is told of one pull: events of a pod are few, and its later ones must not be lost for these.
const (
	// progressFirst is how long a pull is quiet; each further pause is twice as long.
	progressFirst = 10 * time.Second
	progressMax   = 6
)

// tellProgress has events say how far a pull is until stop, which returns when none will follow.
func (p *Puller) tellProgress(ctx context.Context, ref *corev1.ObjectReference, image string) (stop func()) {
	if p.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		began, pause := time.Now(), progressFirst
		for range progressMax {
			if !wait.For(ctx, pause) {
				return
			}
			pause *= 2
			bytes, total, underway := p.Progress(image)
			if underway && total > 0 {
				p.Events.Event(ref, corev1.EventTypeNormal, events.Pulling, fmt.Sprintf("Pulling image %q: %d of %d bytes after %v",
					image, bytes, total, time.Since(began).Truncate(time.Second)))
			}
		}
	}()
	return func() { cancel(); <-done }
}
