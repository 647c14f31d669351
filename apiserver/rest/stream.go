package rest

import (
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
	translator "k8s.io/apiserver/pkg/util/proxy"

	"github.com/setpoint-io/setpoint/apiserver/rest/proxy"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// noBandwidthLimit: streams are bounded by the sockets on both sides.
const noBandwidthLimit = 0

var streamMethods = []string{http.MethodGet, http.MethodPost}

func newExec(pods *Store, nodes *storage.Table, kubelets Kubelets) *podConnect {
	return &podConnect{pods: pods, nodes: nodes, kubelets: kubelets, methods: streamMethods,
		options: func() runtime.Object { return &corev1.PodExecOptions{} },
		check: func(pod *corev1.Pod, o runtime.Object) error {
			_, err := proxy.ContainerOf(pod, o.(*corev1.PodExecOptions).Container)
			return err
		},
		handler: func(t *agentTarget, o runtime.Object, r rest.Responder) (http.Handler, error) {
			e := o.(*corev1.PodExecOptions)
			streams := translator.Options{Stdin: e.Stdin, Stdout: e.Stdout, Stderr: e.Stderr, Tty: e.TTY}
			return streamHandler(t, "exec", e.Container, e.Command, streams, r)
		}}
}

func newAttach(pods *Store, nodes *storage.Table, kubelets Kubelets) *podConnect {
	return &podConnect{pods: pods, nodes: nodes, kubelets: kubelets, methods: streamMethods,
		options: func() runtime.Object { return &corev1.PodAttachOptions{} },
		check: func(pod *corev1.Pod, o runtime.Object) error {
			_, err := proxy.ContainerOf(pod, o.(*corev1.PodAttachOptions).Container)
			return err
		},
		handler: func(t *agentTarget, o runtime.Object, r rest.Responder) (http.Handler, error) {
			a := o.(*corev1.PodAttachOptions)
			streams := translator.Options{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Tty: a.TTY}
			return streamHandler(t, "attach", a.Container, nil, streams, r)
		}}
}

// streamHandler passes a SPDY upgrade on to the agent and translates the newest
// WebSocket protocol, which agents do not speak.
func streamHandler(t *agentTarget, endpoint, container string, command []string, streams translator.Options,
	r rest.Responder) (http.Handler, error) {
	container, err := proxy.ContainerOf(t.pod, container)
	if err != nil {
		return nil, err
	}
	location, dial := proxy.Upgrade(t.url(endpoint, container, streamQuery(command, streams)), t.transport)
	upgrade := newUpgrade(location, dial, r)
	translate := translator.NewStreamTranslatorHandler(location, dial, noBandwidthLimit, streams)
	return translator.NewTranslatingHandler(upgrade, translate, wsstream.IsWebSocketRequestWithStreamCloseProtocol), nil
}

// newUpgrade hands no redirect of an agent on: the client would follow it.
func newUpgrade(location *url.URL, dial http.RoundTripper, r rest.Responder) *apiproxy.UpgradeAwareHandler {
	upgrade := apiproxy.NewUpgradeAwareHandler(location, dial, false, true, apiproxy.NewErrorResponder(r))
	upgrade.RejectForwardingRedirects = true
	return upgrade
}

// streamQuery uses the agent's names for what clients call stdin and stdout.
func streamQuery(command []string, o translator.Options) url.Values {
	query := url.Values{}
	for name, set := range map[string]bool{"input": o.Stdin, "output": o.Stdout, "error": o.Stderr, "tty": o.Tty} {
		if set {
			query.Set(name, "1")
		}
	}
	if len(command) > 0 {
		query["command"] = command
	}
	return query
}

func newPortForward(pods *Store, nodes *storage.Table, kubelets Kubelets) *podConnect {
	return &podConnect{pods: pods, nodes: nodes, kubelets: kubelets, methods: streamMethods,
		options: func() runtime.Object { return &corev1.PodPortForwardOptions{} },
		handler: func(t *agentTarget, o runtime.Object, r rest.Responder) (http.Handler, error) {
			query := url.Values{}
			for _, port := range o.(*corev1.PodPortForwardOptions).Ports {
				query.Add("port", strconv.Itoa(int(port)))
			}
			location, dial := proxy.Upgrade(t.url("portForward", "", query), t.transport)
			upgrade := newUpgrade(location, dial, r)
			tunnel := translator.NewTunnelingHandler(upgrade)
			return translator.NewTranslatingHandler(upgrade, tunnel, wsstream.IsWebSocketRequestWithTunnelingProtocol), nil
		}}
}
