package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Kubelets reaches the agents of nodes. Only a node's own registered address may
// be dialled, and the certificate must name that node.
type Kubelets interface {
	// Agent returns the base URL and the transport for a node's agent.
	Agent(node *corev1.Node) (*url.URL, http.RoundTripper, error)
}

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

// defaultContainerAnnotation names the container that logs and exec mean when
// the client names none.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// podConnect is a subresource of a pod that its node's agent serves.
type podConnect struct {
	pods     *Store
	nodes    *storage.Table
	kubelets Kubelets
	options  func() runtime.Object
	methods  []string
	handler  func(target *agentTarget, options runtime.Object, responder rest.Responder) (http.Handler, error)
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
	obj, err := p.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	target, err := p.target(ctx, storage.Uncache(obj).(*corev1.Pod))
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
	u.Path = "/" + strings.Join(path, "/")
	u.RawQuery = query.Encode()
	return &u
}

// container checks the name a client asked for, or finds the one that is meant.
func (t *agentTarget) container(asked string) (string, error) {
	names := containerNames(t.pod)
	if asked != "" {
		if !slices.Contains(names, asked) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", asked, t.pod.Name))
		}
		return asked, nil
	}
	if named := t.pod.Annotations[defaultContainerAnnotation]; slices.Contains(names, named) {
		return named, nil
	}
	if len(t.pod.Spec.Containers) == 1 {
		return t.pod.Spec.Containers[0].Name, nil
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %v", t.pod.Name, names))
}

func containerNames(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}
