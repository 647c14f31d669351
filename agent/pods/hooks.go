package pods

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/pods/probes"
)

// postStart runs c's hook; a failed one ends the container.
func (w *worker) postStart(ctx context.Context, v view, c *corev1.Container, id string) *failure {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return nil
	}
	err := w.hook(ctx, v, c, id, c.Lifecycle.PostStart, 0)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	ref := events.Container(v.pod, c.Name)
	w.m.Events.Event(ref, corev1.EventTypeWarning, events.FailedPostStartHook, fmt.Sprintf("PostStartHook failed: %v", err))
	w.m.Events.Event(ref, corev1.EventTypeNormal, events.Killing, "FailedPostStartHook")
	if stopErr := w.m.Runtime.StopContainer(ctx, id, v.grace()); stopErr != nil {
		w.logger.Warn("cannot stop a container after its hook failed", "container", c.Name, "err", stopErr)
	}
	return fail(reasonPostStart, err)
}

// preStop runs the victim's hook, at most for its grace period.
func (w *worker) preStop(ctx context.Context, v view, c victim) {
	spec := findContainer(v.pod, c.container.ContainerName())
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PreStop == nil {
		return
	}
	limit := time.Duration(c.grace) * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.hook(ctx, v, spec, c.container.Id, spec.Lifecycle.PreStop, limit); err != nil {
		w.m.Events.Event(events.Container(v.pod, spec.Name), corev1.EventTypeWarning, events.FailedPreStopHook, "PreStopHook failed")
	}
}

// hook runs one handler. Limit bounds a command; 0 is no limit but ctx.
func (w *worker) hook(ctx context.Context, v view, c *corev1.Container, id string, h *corev1.LifecycleHandler, limit time.Duration) error {
	switch {
	case h.Exec != nil:
		_, stderr, err := w.m.Runtime.ExecSync(ctx, id, h.Exec.Command, limit)
		if err != nil {
			return fmt.Errorf("command %q: %w, message: %q", h.Exec.Command, err, stderr)
		}
		return nil
	case h.Sleep != nil:
		wait.For(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
		return nil
	case h.HTTPGet != nil:
		return w.httpHook(ctx, v, c, h.HTTPGet)
	default:
		return fmt.Errorf("invalid handler: %v", h)
	}
}

func (w *worker) httpHook(ctx context.Context, v view, c *corev1.Container, get *corev1.HTTPGetAction) error {
	req, err := probes.HTTPRequest(ctx, get, c, podIP(v.pod, v.runtime, w.m.HostIPs()), w.m.UserAgent)
	if err != nil {
		return err
	}
	return send(req)
}

// send asks a container, whose certificate may be any, as a kubelet does, and which no proxy stands before.
func send(req *http.Request) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
		MaxResponseHeaderBytes: probes.HeaderBytesMax}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 10<<10) // so that the server sees its answer taken
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", req.URL, resp.Status)
	}
	return nil
}
