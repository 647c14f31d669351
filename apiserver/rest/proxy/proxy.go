package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Kubelets reaches the agents of nodes.
type Kubelets interface {
	Agent(node *corev1.Node) (*url.URL, http.RoundTripper, error)
}

// Config is what proxies need. All fields are required.
type Config struct {
	Storage  *storage.Store
	Kubelets Kubelets
	// Pods reaches whatever listens in a pod or on a node.
	Pods       http.RoundTripper
	Authorizer authorizer.Authorizer
}

// Methods are the methods that are passed on, with the verb that is judged.
var Methods = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodOptions: "",
}

// locate finds where a request for "name", "name:port" or "scheme:name:port" goes. The
// path of the result is put before the client's.
type locate func(ctx context.Context, scheme, name, port string) (*url.URL, http.RoundTripper, error)

// Proxy serves the proxy subresource of one kind.
type Proxy struct {
	kind   *resource.Any
	config Config
	locate locate
	// options takes the path of a request, path returns it.
	options func() runtime.Object
	path    func(options runtime.Object) string
}

var _ rest.Connecter = (*Proxy)(nil)

// New implements rest.Storage.
func (p *Proxy) New() runtime.Object { return p.options() }

// Destroy implements rest.Storage.
func (p *Proxy) Destroy() {}

// NewConnectOptions implements rest.Connecter: what follows the name is an option.
func (p *Proxy) NewConnectOptions() (runtime.Object, bool, string) {
	return p.options(), true, "path"
}

// ConnectMethods implements rest.Connecter.
func (p *Proxy) ConnectMethods() []string {
	methods := []string{http.MethodHead}
	for method := range Methods {
		methods = append(methods, method)
	}
	return methods
}

// Connect implements rest.Connecter.
func (p *Proxy) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", p.kind.SingularName(), id))
	}
	location, transport, err := p.locate(ctx, scheme, name, port)
	if err != nil {
		return nil, err
	}
	location.Path = utilnet.JoinPreservingTrailingSlash(location.Path, p.path(options))
	errorResponder := apiproxy.NewErrorResponder(responder)
	onward := apiproxy.NewUpgradeAwareHandler(location, transport, true, false, errorResponder)
	to, dial := Upgrade(location, transport)
	upgrade := apiproxy.NewUpgradeAwareHandler(to, dial, true, false, errorResponder)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if httpstream.IsUpgradeRequest(r) {
			if err := MayCreate(ctx, p.config.Authorizer); err != nil { // a stream into a node runs commands, whatever it began with
				responder.Error(err)
				return
			}
			upgrade.ServeHTTP(w, r)
			return
		}
		onward.ServeHTTP(w, r)
	}), nil
}

// New returns what serves a kind whose objects can be talked to, nil for others.
func New(kind *resource.Any, config Config) *Proxy {
	p := &Proxy{kind: kind, config: config}
	switch kind.GroupVersionResource() {
	case nodesResource:
		p.locate = p.locateNode
		p.options = func() runtime.Object { return &corev1.NodeProxyOptions{} }
		p.path = func(o runtime.Object) string { return o.(*corev1.NodeProxyOptions).Path }
	case podsResource:
		p.locate = p.locatePod
		p.options = func() runtime.Object { return &corev1.PodProxyOptions{} }
		p.path = func(o runtime.Object) string { return o.(*corev1.PodProxyOptions).Path }
	case servicesResource:
		p.locate = p.locateService
		p.options = func() runtime.Object { return &corev1.ServiceProxyOptions{} }
		p.path = func(o runtime.Object) string { return o.(*corev1.ServiceProxyOptions).Path }
	default:
		return nil
	}
	return p
}

// locateNode: the agent's own port is reached as the agent is, by its certificate. Any
// other port is whoever listens there.
func (p *Proxy) locateNode(ctx context.Context, scheme, name, port string) (*url.URL, http.RoundTripper, error) {
	found, err := p.config.Storage.Table(nodesResource).Get(ctx, "", name, "")
	if err != nil {
		return nil, nil, err
	}
	base, transport, err := p.config.Kubelets.Agent(found.Object().(*corev1.Node))
	if err != nil {
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %s cannot be reached: %v", name, err))
	}
	if port == "" || port == base.Port() {
		location := *base
		return &location, transport, nil
	}
	return p.outward(scheme, base.Hostname(), port)
}

// locatePod: without a port it is the first that any container names.
func (p *Proxy) locatePod(ctx context.Context, scheme, name, port string) (*url.URL, http.RoundTripper, error) {
	found, err := p.config.Storage.Table(podsResource).Get(ctx, request.NamespaceValue(ctx), name, "")
	if err != nil {
		return nil, nil, err
	}
	pod := found.Object().(*corev1.Pod)
	if port == "" {
		port = firstPort(pod)
	}
	return p.outward(scheme, pod.Status.PodIP, port)
}

func firstPort(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if len(container.Ports) > 0 {
			return strconv.Itoa(int(container.Ports[0].ContainerPort))
		}
	}
	return ""
}

// outward leads to an address that somebody wrote into an object. What only this
// machine or its link can reach is not for clients.
func (p *Proxy) outward(scheme, host, port string) (*url.URL, http.RoundTripper, error) {
	address, err := netip.ParseAddr(host)
	if err != nil || !address.Unmap().IsGlobalUnicast() {
		return nil, nil, apierrors.NewBadRequest("address not allowed")
	}
	return &url.URL{Scheme: scheme, Host: strings.TrimSuffix(net.JoinHostPort(host, port), ":")}, p.config.Pods, nil
}

// locateService: any ready pod behind one of its ports.
func (p *Proxy) locateService(ctx context.Context, scheme, name, port string) (*url.URL, http.RoundTripper, error) {
	tables := p.config.Storage
	behind := serviceBackends{
		services: tables.Table(servicesResource),
		pods:     tables.Table(podsResource),
		slices:   tables.Table(slicesResource),
	}
	host, number, err := behind.pick(ctx, request.NamespaceValue(ctx), name, port)
	if err != nil {
		return nil, nil, err
	}
	return p.outward(scheme, host, number)
}
