package aggregation

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	proxyutil "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"k8s.io/streaming/pkg/httpstream"
)

// proxy passes one request on.
type proxy struct {
	*route
	codecs runtime.NegotiatedSerializer
}

// ServeHTTP implements http.Handler.
func (p proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !available(p.service) {
		p.refuse(w, r, apierrors.NewServiceUnavailable("service unavailable: "+whyUnavailable(p.service)))
		return
	}
	u, ok := request.UserFrom(r.Context())
	if !ok {
		p.refuse(w, r, apierrors.NewUnauthorized("missing user"))
		return
	}
	location, err := p.backend.locate(r.URL.Path)
	if err != nil {
		p.refuse(w, r, apierrors.NewServiceUnavailable("service unavailable: "+err.Error()))
		return
	}
	location.RawQuery = r.URL.RawQuery
	next, cancel := proxyutil.NewRequestForProxy(location, r)
	defer cancel()
	upgrade := httpstream.IsUpgradeRequest(r)
	if upgrade { // such a request is written to the connection itself, past the transport
		transport.SetAuthProxyHeaders(next, u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
	}
	named := transport.NewAuthProxyRoundTripper(u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra(), p.backend.caller().Transport)
	p.pass(location, unrepeated{named, w.Header()}, upgrade).ServeHTTP(w, next)
}

func (p proxy) pass(location *url.URL, through http.RoundTripper, upgrade bool) http.Handler {
	h := utilproxy.NewUpgradeAwareHandler(location, through, true, upgrade, p)
	h.RejectForwardingRedirects = true
	return h
}

// Error implements utilproxy.ErrorResponder.
func (p proxy) Error(w http.ResponseWriter, r *http.Request, err error) {
	p.refuse(w, r, apierrors.NewServiceUnavailable(err.Error()))
}

func (p proxy) refuse(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, p.codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// unrepeated is a transport whose answers leave out what this server has said already:
// the copy of an answer's header is added to what is there, and a client would read
// the name of the request and how long to keep the answer twice.
type unrepeated struct {
	http.RoundTripper
	said http.Header
}

// RoundTrip implements http.RoundTripper. Warnings are a list, and all of them are passed on.
func (u unrepeated) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for name := range u.said {
		if name != "Warning" {
			response.Header.Del(name)
		}
	}
	return response, nil
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper: upgrades dial as what is inside.
func (u unrepeated) WrappedRoundTripper() http.RoundTripper { return u.RoundTripper }

func available(service *apiregistrationv1.APIService) bool {
	return helper.IsAPIServiceConditionTrue(service, apiregistrationv1.Available)
}

func whyUnavailable(service *apiregistrationv1.APIService) string {
	c := helper.GetAPIServiceConditionByType(service, apiregistrationv1.Available)
	if c == nil {
		return "APIService " + service.Name + " was not looked at yet"
	}
	return "APIService " + service.Name + ": " + c.Reason + ": " + c.Message
}
