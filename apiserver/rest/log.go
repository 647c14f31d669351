package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
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
	plain := plainLog(t, location, r)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if wsstream.IsWebSocketRequest(request) {
			framedLog(t, location, r, w, request)
			return
		}
		plain.ServeHTTP(w, request)
	}), nil
}

// framedLog sends a log over a WebSocket, as programs in browsers read it.
func framedLog(t *agentTarget, location *url.URL, r rest.Responder, w http.ResponseWriter, request *http.Request) {
	ask, err := http.NewRequestWithContext(request.Context(), http.MethodGet, location.String(), nil)
	if err != nil {
		r.Error(err)
		return
	}
	response, err := t.transport.RoundTrip(ask)
	if err != nil {
		r.Error(t.silent(err))
		return
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxAgentErrorBytes))
		r.Error(agentError(response.StatusCode, text))
		return
	case response.StatusCode >= http.StatusMultipleChoices:
		r.Error(t.silent(errRedirect))
		return
	}
	// wsstream drops what a reader returns together with the end; bufio returns it before.
	text := bufio.NewReader(response.Body)
	// An error is that of a connection that is the socket's by now: nobody could be told.
	_ = wsstream.NewReader(text, true, wsstream.NewDefaultReaderProtocols()).Copy(w, request)
}

// plainLog passes the agent's answer through.
func plainLog(t *agentTarget, location *url.URL, r rest.Responder) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = location, location.Host
			p.Out.Header = http.Header{} // nothing of the client's, least of all its credentials
		},
		Transport:      t.transport,
		FlushInterval:  -1, // follow: every line at once
		ModifyResponse: plainText,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			r.Error(t.silent(err))
		},
	}
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

// plainText turns an agent's refusal into the Status that clients expect.
func plainText(response *http.Response) error {
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest {
		return errRedirect
	}
	if response.StatusCode < http.StatusMultipleChoices {
		response.Header.Set("Content-Type", "text/plain")
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAgentErrorBytes))
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	status := agentError(response.StatusCode, text).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Type", "application/json")
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return err
}

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
