package rest

import (
	"bytes"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// maxAgentErrorBytes bounds how much of an agent's error text a client is shown.
const maxAgentErrorBytes = 4 << 10

func newLog(pods *Store, nodes *storage.Table, kubelets Kubelets) *podConnect {
	return &podConnect{pods: pods, nodes: nodes, kubelets: kubelets, methods: []string{http.MethodGet},
		options: func() runtime.Object { return &corev1.PodLogOptions{} },
		handler: func(t *agentTarget, o runtime.Object, r rest.Responder) (http.Handler, error) {
			return logHandler(t, o.(*corev1.PodLogOptions), r)
		}}
}

func logHandler(t *agentTarget, o *corev1.PodLogOptions, r rest.Responder) (http.Handler, error) {
	if errs := validateLogOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), t.pod.Name, errs)
	}
	container, err := t.container(o.Container)
	if err != nil {
		return nil, err
	}
	location := t.url("containerLogs", container, logQuery(o))
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = location, location.Host
			p.Out.Header = http.Header{} // nothing of the client's, least of all its credentials
		},
		Transport:      t.transport,
		FlushInterval:  -1, // follow: every line at once
		ModifyResponse: plainText,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			r.Error(apierrors.NewServiceUnavailable(fmt.Sprintf("the agent of node %s did not answer: %v", t.pod.Spec.NodeName, err)))
		},
	}, nil
}

// plainText turns an agent's refusal into the Status that clients expect.
func plainText(response *http.Response) error {
	if response.StatusCode < http.StatusBadRequest {
		response.Header.Set("Content-Type", "text/plain")
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAgentErrorBytes))
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	status := apierrors.NewGenericServerResponse(response.StatusCode, "get", corev1.Resource("pods/log"), "", strings.TrimSpace(string(text)), 0, true).Status()
	status.Message = strings.TrimSpace(string(text))
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
	negative := func(name string, number *int64, least int64) {
		if number != nil && *number < least {
			errs = append(errs, field.Invalid(field.NewPath(name), *number, fmt.Sprintf("must be greater than or equal to %d", least)))
		}
	}
	negative("tailLines", o.TailLines, 0)
	negative("limitBytes", o.LimitBytes, 1)
	negative("sinceSeconds", o.SinceSeconds, 1)
	if o.SinceSeconds != nil && o.SinceTime != nil {
		errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	}
	return errs
}
