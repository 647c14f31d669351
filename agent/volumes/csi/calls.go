package csi

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
)

// CallTimeout is how long a driver may take for one call. It may go on with it; the call is made again. Upstream's.
const CallTimeout = 2 * time.Minute

// patience is how long a driver may take until a pod is told that it waits for it.
const patience = 10 * time.Second

// tellSlow tells a pod of a call that takes long, unless the result is called before.
func (m *Manager) tellSlow(pod *corev1.Pod, p paths, reason, method string) (over func() bool) {
	return time.AfterFunc(m.Patience, func() {
		if pod.Name == "" { // it was gone before this agent began
			return
		}
		m.Events.Eventf(events.Pod(pod), corev1.EventTypeWarning, reason,
			"the CSI driver %s has not answered %s for volume %q for %v; it may take %v", p.id.driver, method, p.specName, m.Patience, CallTimeout)
	}).Stop
}

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
