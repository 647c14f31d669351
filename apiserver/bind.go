package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Bind binds a pod for a part of this process. It is a request as any other: authorized, admitted, recorded and counted. Only the
// binding and the error are passed as they are, not encoded. Errors are those of the API.
func (s *Server) Bind(ctx context.Context, c Caller, b *corev1.Binding) error {
	origin := storage.OriginFrom(ctx)
	if c.Origin != nil {
		origin = c.Origin(ctx)
	}
	call := &rest.TypedBinding{Binding: b}
	inside := rest.WithTypedBinding(storage.WithOrigin(context.WithValue(ctx, callerKey{}, c.User), origin), call)
	w := &briefAnswer{header: http.Header{}}
	s.ServeHTTP(w, bindingRequest(inside, c.User, b))
	switch {
	case call.Answered:
		return call.Err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return w.err()
}

func bindingRequest(ctx context.Context, u user.Info, b *corev1.Binding) *http.Request {
	path := "/api/v1/namespaces/" + b.Namespace + "/pods/" + b.Name + "/binding"
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: "in-process", Path: path}, RequestURI: path, Host: "in-process",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Header: http.Header{"User-Agent": {u.GetName()}, "Accept": {"application/json"}},
	}
	return r.WithContext(ctx)
}

// briefAnswer keeps an answer: a Status, if anything.
type briefAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *briefAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *briefAnswer) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

// Write implements http.ResponseWriter.
func (w *briefAnswer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// err is what the chain refused the request with.
func (w *briefAnswer) err() error {
	var status metav1.Status
	if err := json.Unmarshal(w.body.Bytes(), &status); err != nil || status.Status != metav1.StatusFailure {
		return apierrors.NewInternalError(fmt.Errorf("a binding was answered with %d: %.200s", w.code, w.body.Bytes()))
	}
	return &apierrors.StatusError{ErrStatus: status}
}
