package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/rest/proxy"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// maxAgentErrorBytes bounds how much of an agent's error text a client is shown.
const maxAgentErrorBytes = 4 << 10

func newLog(pods *Store, nodes *storage.Table, kubelets Kubelets) *podConnect {
	return &podConnect{pods: pods, nodes: nodes, kubelets: kubelets, ofParts: true, methods: []string{http.MethodGet},
		options: func() runtime.Object { return &corev1.PodLogOptions{} },
		check:   checkLog,
		unassigned: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent) // nothing has been said yet
		}),
		handler: func(t *agentTarget, o runtime.Object, r rest.Responder) (http.Handler, error) {
			return logHandler(t, o.(*corev1.PodLogOptions), r)
		}}
}

func checkLog(pod *corev1.Pod, options runtime.Object) error {
	o := options.(*corev1.PodLogOptions)
	if errs := validateLogOptions(o); len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), pod.Name, errs)
	}
	_, err := proxy.ContainerOf(pod, o.Container)
	return err
}

func logHandler(t *agentTarget, o *corev1.PodLogOptions, r rest.Responder) (http.Handler, error) {
	container, err := proxy.ContainerOf(t.pod, o.Container)
	if err != nil {
		return nil, err
	}
	location := t.url("containerLogs", container, logQuery(o))
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if wsstream.IsWebSocketRequest(request) {
			framedLog(t, location, r, w, request)
			return
		}
		plainLog(t, location, r, w, request)
	}), nil
}

// framedLog sends a log over a WebSocket, as programs in browsers read it.
func framedLog(t *agentTarget, location *url.URL, r rest.Responder, w http.ResponseWriter, request *http.Request) {
	log, err := t.ask(request.Context(), location)
	if err != nil {
		r.Error(err)
		return
	}
	defer log.Close()
	// wsstream drops what a reader returns together with the end; bufio returns it before.
	text := bufio.NewReader(log)
	// An error is that of a connection that is the socket's by now: nobody could be told.
	_ = wsstream.NewReader(text, true, wsstream.NewDefaultReaderProtocols()).Copy(w, request)
}

// plainLog sends what the agent answers with, and nothing of its header: what that says would be taken for the server's word.
func plainLog(t *agentTarget, location *url.URL, r rest.Responder, w http.ResponseWriter, request *http.Request) {
	log, err := t.ask(request.Context(), location)
	if err != nil {
		r.Error(err)
		return
	}
	defer log.Close()
	w.Header().Set("Content-Type", "text/plain")
	out := &followed{w: w, flush: http.NewResponseController(w).Flush}
	if _, err := io.Copy(out, log); err != nil && out.err == nil {
		panic(http.ErrAbortHandler) // the client must see that its log was cut
	}
}

// followed sends each part at once.
type followed struct {
	w     io.Writer
	flush func() error
	err   error // the client's
}

// Write implements io.Writer.
func (f *followed) Write(p []byte) (n int, err error) {
	n, f.err = f.w.Write(p)
	_ = f.flush() // else the next write fails
	return n, f.err
}

// ask returns the log that the agent answers with, or the error for the client.
func (t *agentTarget) ask(ctx context.Context, location *url.URL) (io.ReadCloser, error) {
	question, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := t.transport.RoundTrip(question)
	if err != nil {
		return nil, t.silent(err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return response.Body, nil
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusBadRequest {
		return nil, t.silent(errRedirect)
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAgentErrorBytes))
	return nil, agentError(response.StatusCode, text)
}

// silent is the error of an agent that did not answer.
func (t *agentTarget) silent(err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the agent of node %s did not answer: %v", t.pod.Spec.NodeName, err))
}

// agentError is the error that an agent answered with.
func agentError(code int, text []byte) *apierrors.StatusError {
	message := strings.TrimSpace(string(text))
	err := apierrors.NewGenericServerResponse(code, "get", corev1.Resource("pods/log"), "", message, 0, true)
	err.ErrStatus.Message = message
	return err
}

// errRedirect: an agent must not send clients elsewhere.
var errRedirect = errors.New("it answered with a redirect")

func logQuery(o *corev1.PodLogOptions) url.Values {
	query := url.Values{}
	for name, set := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if set {
			query.Set(name, "true")
		}
	}
	for name, number := range map[string]*int64{"tailLines": o.TailLines, "limitBytes": o.LimitBytes, "sinceSeconds": o.SinceSeconds} {
		if number != nil {
			query.Set(name, strconv.FormatInt(*number, 10))
		}
	}
	if o.SinceTime != nil {
		query.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	if o.Stream != nil {
		query.Set("stream", *o.Stream)
	}
	return query
}

func validateLogOptions(o *corev1.PodLogOptions) field.ErrorList {
	var errs field.ErrorList
	least := func(name string, number *int64, least int64, message string) {
		if number != nil && *number < least {
			errs = append(errs, field.Invalid(field.NewPath(name), *number, message))
		}
	}
	least("tailLines", o.TailLines, 0, "must be greater than or equal to 0")
	least("limitBytes", o.LimitBytes, 1, "must be greater than 0")
	least("sinceSeconds", o.SinceSeconds, 1, "must be greater than 0")
	if o.SinceSeconds != nil && o.SinceTime != nil {
		errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	}
	return errs
}
