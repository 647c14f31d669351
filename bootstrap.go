package setpoint

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac/policy"
)

const (
	// kubernetesServiceIP is where pods find the API: the first Service address.
	kubernetesServiceIP = "10.96.0.1"
	kubernetesService   = "kubernetes"
	httpsPort           = 443
	// bootstrapRetryInterval is how long a failed bootstrap waits for the next try.
	bootstrapRetryInterval = time.Second
	// membershipPollInterval is how often the leader looks whether servers came or went.
	membershipPollInterval = 5 * time.Second
)

var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// until repeats what may fail for a moment, such as a write during an election.
// It returns false when ctx ended first.
func (l *loops) until(ctx context.Context, what string, do func(context.Context) error) bool {
	for {
		err := do(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		l.server.config.Logger.Warn("not there yet", "what", what, "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(bootstrapRetryInterval):
		}
	}
}

// ensureNamespaces makes the namespaces that every cluster has; the control loops
// write to some of them.
func ensureNamespaces(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range systemNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := ensured(client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// ensureRoles makes the default roles. The library that does it passes no context:
// without one of ours a server that stops alone would wait for a majority.
func (s *Server) ensureRoles(ctx context.Context, term uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := s.restConfig(serverUser, term)
	config.Transport = apiserver.EndingWith(ctx, config.Transport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return policy.Reconcile(ctx, client)
}

// publishAPI keeps the Service by which pods find the API as the membership is,
// until ctx ends.
func (l *loops) publishAPI(ctx context.Context, client kubernetes.Interface) error {
	published := ""
	for {
		now := fmt.Sprint(l.server.servers())
		if now != published && l.until(ctx, "service "+kubernetesService, func(ctx context.Context) error {
			return ensureAPIService(ctx, client, l.server)
		}) {
			published = now
		}
		if !sleep(ctx, membershipPollInterval) {
			return nil
		}
	}
}

// ensureAPIService makes the Service by which pods find the API.
func ensureAPIService(ctx context.Context, client kubernetes.Interface, s *Server) error {
	if err := ensured(client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, apiService(), metav1.CreateOptions{})); err != nil {
		return fmt.Errorf("service %s: %w", kubernetesService, err)
	}
	slice, err := apiEndpoints(s)
	if err != nil {
		return err
	}
	return ensureEndpoints(ctx, client, slice)
}

// ensured forgives that an object is there already.
func ensured[T any](_ T, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func apiService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesService, Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: kubernetesServiceIP,
			Ports:     []corev1.ServicePort{{Name: "https", Port: httpsPort, TargetPort: intstr.FromInt32(DefaultPort)}},
		},
	}
}

// apiEndpoints lists the servers that have an address; names are resolved.
func apiEndpoints(s *Server) (*discoveryv1.EndpointSlice, error) {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   kubernetesService,
			Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesService, discoveryv1.LabelManagedBy: "setpoint"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, server := range s.servers() {
		host, portText, err := net.SplitHostPort(server.Endpoint)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseInt(portText, 10, 32)
		if err != nil {
			return nil, err
		}
		ip, err := net.ResolveIPAddr("ip4", host)
		if err != nil {
			return nil, err
		}
		if ip.IP.IsLoopback() {
			continue // an endpoint must be reachable from pods
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
		slice.Ports = []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}}
	}
	return slice, nil
}

func ensureEndpoints(ctx context.Context, client kubernetes.Interface, want *discoveryv1.EndpointSlice) error {
	slices := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	have, err := slices.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ensured(slices.Create(ctx, want, metav1.CreateOptions{}))
	}
	if err != nil || apiequality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) {
		return err
	}
	have.Endpoints, have.Ports = want.Endpoints, want.Ports
	_, err = slices.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
