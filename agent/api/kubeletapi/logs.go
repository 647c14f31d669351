package kubeletapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	criLogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// statusError is an answer other than 200.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

func badRequest(format string, args ...any) *statusError {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *statusError {
	return &statusError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func refuse(w http.ResponseWriter, err *statusError) { http.Error(w, err.message, err.code) }

// logs streams one incarnation's log.
func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	opts, refused := logOptions(r.URL.Query(), time.Now())
	if refused != nil {
		refuse(w, refused)
		return
	}
	run, refused := s.incarnation(r.Context(), r, r.URL.Query().Get("previous") == "true")
	if refused != nil {
		refuse(w, refused)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	if err := s.send(w, r, run, opts); err != nil && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// send sends the lines, in the turn of the pod's namespace. The error is why there were none.
func (s *server) send(w http.ResponseWriter, r *http.Request, run *observed.Container, opts *criLogs.LogOptions) error {
	path := s.Dirs.LogFile(run)
	turn := &look{ctx: r.Context(), turns: s.looks, holder: shares.Namespace(r.PathValue("namespace"))}
	out := &gathered{w: w, outside: turn.outside}
	defer out.Close()
	turn.begin(opts.Follow, path)
	defer turn.end()
	stdout, stderr := selectStreams(out, r.URL.Query().Get("stream"))
	err := criLogs.ReadLogs(klog.NewContext(r.Context(), logr.Discard()), path, run.Id, opts, s.Runtime, stdout, stderr)
	if out.wrote {
		return nil
	}
	return err
}

// incarnation finds the container a log request means.
func (s *server) incarnation(ctx context.Context, r *http.Request, previous bool) (*observed.Container, *statusError) {
	pod, name, refused := s.container(r)
	if refused != nil {
		return nil, refused
	}
	seen, err := observed.Read(ctx, s.Runtime, pod.UID)
	if err != nil {
		return nil, &statusError{http.StatusInternalServerError, err.Error()}
	}
	latest := seen.Latest(name)
	if latest != nil && latest.Created() { // it has no log yet, and to follow it would end at once
		latest = seen.Previous(name)
	}
	switch {
	case previous && seen.Previous(name) == nil:
		return nil, badRequest("previous terminated container %q in pod %q not found", name, pod.Name)
	case previous:
		return seen.Previous(name), nil
	case latest == nil:
		return nil, badRequest("container %q in pod %q is waiting to start: %s", name, pod.Name, waitingReason(pod, name))
	default:
		return latest, nil
	}
}

// container checks that the pod and the container of the path exist.
func (s *server) container(r *http.Request) (*corev1.Pod, string, *statusError) {
	name := r.PathValue("container")
	pod, refused := s.pod(r)
	if refused != nil {
		return nil, "", refused
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return pod, name, nil
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return pod, name, nil
		}
	}
	return nil, "", notFound("container %q not found in pod %q", name, pod.Name+"_"+pod.Namespace)
}

func (s *server) pod(r *http.Request) (*corev1.Pod, *statusError) {
	pod, ok := s.Pods.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if uid := r.PathValue("uid"); !ok || uid != "" && uid != string(pod.UID) {
		return nil, notFound("pod %q not found", r.PathValue("pod")+"_"+r.PathValue("namespace"))
	}
	return pod, nil
}

func waitingReason(pod *corev1.Pod, name string) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].State.Waiting != nil && list[i].State.Waiting.Reason != "" {
				return list[i].State.Waiting.Reason
			}
		}
	}
	return "ContainerCreating"
}

// logOptions parses the query of a log request, the fields of PodLogOptions.
func logOptions(q url.Values, now time.Time) (*criLogs.LogOptions, *statusError) {
	opts := &criLogs.LogOptions{Follow: q.Get("follow") == "true", Timestamp: q.Get("timestamps") == "true"}
	var refused *statusError
	number := func(key string, least int64) *int64 {
		text := q.Get(key)
		if text == "" {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least {
			refused = badRequest("invalid %s: %q", key, text)
			return nil
		}
		return &n
	}
	opts.TailLines, opts.LimitBytes = number("tailLines", 0), number("limitBytes", 1)
	if seconds := number("sinceSeconds", 1); seconds != nil {
		opts.Since = now.Add(-time.Duration(*seconds) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			refused = badRequest("invalid sinceTime: %q", text)
		}
		opts.Since = since
	}
	return opts, refused
}

func selectStreams(out io.Writer, name string) (stdout, stderr io.Writer) {
	switch name {
	case corev1.LogStreamStdout:
		return out, nil
	case corev1.LogStreamStderr:
		return nil, out
	default:
		return out, out
	}
}
