package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/rest/proxy"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Kubelets reaches the agents of nodes. Only a node's own registered address may
// be dialled, and the certificate must name that node.
type Kubelets interface {
	// Agent returns the base URL and the transport for a node's agent.
	Agent(node *corev1.Node) (*url.URL, http.RoundTripper, error)
}

// Servers reaches the servers whose parts are seen as pods.
type Servers interface {
	// Server returns the base URL and the transport for the logs of the server that the pod is of; ok is false for other pods.
	Server(pod *corev1.Pod) (base *url.URL, transport http.RoundTripper, ok bool, err error)
}

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

// podConnect is a subresource of a pod that its node's agent serves.
type podConnect struct {
	pods     *Store
	nodes    *storage.Table
	kubelets Kubelets
	servers  Servers
	options  func() runtime.Object
	methods  []string
	// create judges whether the user may create, too; nil: reading is enough.
	create authorizer.Authorizer
	// check judges the options before anybody looks for the node.
	check func(pod *corev1.Pod, options runtime.Object) error
	// ofParts: it is there for the parts of servers, too.
	ofParts bool
	// unassigned answers for a pod that no node runs yet; nil: that is a mistake.
	unassigned http.Handler
	handler    func(target *agentTarget, options runtime.Object, responder rest.Responder) (http.Handler, error)
}

var _ rest.Connecter = (*podConnect)(nil)

// New implements rest.Storage.
func (p *podConnect) New() runtime.Object { return &corev1.Pod{} }

// Destroy implements rest.Storage.
func (p *podConnect) Destroy() {}

// NewConnectOptions implements rest.Connecter.
func (p *podConnect) NewConnectOptions() (runtime.Object, bool, string) {
	return p.options(), false, ""
}

// ConnectMethods implements rest.Connecter.
func (p *podConnect) ConnectMethods() []string { return p.methods }

// Connect implements rest.Connecter.
func (p *podConnect) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	if p.create != nil {
		if err := proxy.MayCreate(ctx, p.create); err != nil {
			return nil, err
		}
	}
	obj, err := p.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := storage.Uncache(obj).(*corev1.Pod)
	if p.check != nil {
		if err := p.check(pod, options); err != nil {
			return nil, err
		}
	}
	if pod.Spec.NodeName == "" && p.unassigned != nil {
		return p.unassigned, nil
	}
	target, err := p.target(ctx, pod)
	if err != nil {
		return nil, err
	}
	return p.handler(target, options, responder)
}

// agentTarget is a pod and the way to the agent that runs it.
type agentTarget struct {
	pod       *corev1.Pod
	base      *url.URL
	transport http.RoundTripper
}

func (p *podConnect) target(ctx context.Context, pod *corev1.Pod) (*agentTarget, error) {
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	if p.servers != nil {
		base, transport, ok, err := p.servers.Server(pod)
		switch {
		case ok && !p.ofParts:
			return nil, apierrors.NewBadRequest(fmt.Sprintf(
				"pod %s is a part of a Setpoint server, and no container: only its log can be read; metrics are at /metrics of the server", pod.Name))
		case ok && err != nil:
			return nil, apierrors.NewServiceUnavailable(err.Error())
		case ok:
			return &agentTarget{pod: pod, base: base, transport: endingQuietly{transport}}, nil
		}
	}
	cached, err := p.nodes.Get(ctx, "", pod.Spec.NodeName, "")
	if err != nil {
		return nil, err
	}
	base, transport, err := p.kubelets.Agent(cached.Object().(*corev1.Node))
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %s cannot be reached: %v", pod.Spec.NodeName, err))
	}
	return &agentTarget{pod: pod, base: base, transport: transport}, nil
}

// url is the agent's endpoint for the pod, and for one of its containers.
func (t *agentTarget) url(endpoint, container string, query url.Values) *url.URL {
	path := []string{endpoint, t.pod.Namespace, t.pod.Name}
	if container != "" {
		path = append(path, container)
	}
	u := *t.base
	u.Path += "/" + strings.Join(path, "/")
	u.RawQuery = query.Encode()
	return &u
}
