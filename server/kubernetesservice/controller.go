package kubernetesservice

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

const (
	// Name is the Service's, in the namespace default.
	Name = "kubernetes"

	portName  = "https"
	httpsPort = 443
	// sliceManager marks the slices that are kept here.
	sliceManager = "setpoint"
	// membershipPollInterval is how often the servers are looked at.
	membershipPollInterval = 5 * time.Second
	// endpointsReadInterval is how often the Endpoints, which no cache holds, are read while the servers stay the same.
	endpointsReadInterval = time.Minute
)

// Server is where one API server is.
type Server struct {
	Name string
	// Endpoint is host:port.
	Endpoint string
	// Addresses are further hosts with the same port.
	Addresses []string
	// Gossip is host:port where it gossips; empty: that is not known.
	Gossip string
}

// New keeps the Service, at the address given. servers are all API servers that there are now, targetPort is shown in
// the Service; the endpoints have their own.
func New(servers func() []Server, address netip.Addr, targetPort int32) reconcile.Controller {
	return reconcile.Controller{
		Name:  "kubernetes-service-controller",
		Reads: Reads(),
		Run: func(ctx context.Context, env *reconcile.Env) error {
			c := &controller{env: env, servers: servers, address: address, targetPort: targetPort,
				services: reconcile.Services.From(env), slices: reconcile.EndpointSlices.From(env)}
			return c.run(ctx)
		},
	}
}

// Reads are what New declares, whatever it is given.
func Reads() []reconcile.Read { return []reconcile.Read{reconcile.Services, reconcile.EndpointSlices} }

type controller struct {
	env        *reconcile.Env
	servers    func() []Server
	address    netip.Addr
	targetPort int32
	services   reconcile.Cache[*corev1.Service]
	slices     reconcile.Cache[*discoveryv1.EndpointSlice]

	// Of whom the Endpoints told when they were last read, and when that was. The loop's one worker uses them.
	told   []Server
	toldAt time.Time
}

func (c *controller) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name: "kubernetesservice",
		Reconcile: func(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
			return membershipPollInterval, c.keep(ctx)
		},
		Sources: []reconcile.Source{reconcile.Changes(c.services, ours), reconcile.Changes(c.slices, ours)},
		Feeds:   []reconcile.Feed{reconcile.Once(reconcile.Key{})},
		Workers: 1,
		Env:     c.env,
	})
}

// ours maps the Service and what belongs to it to the one key.
func ours(before, after metav1.Object) []reconcile.Key {
	o := after
	if o == nil {
		o = before
	}
	if o.GetNamespace() != metav1.NamespaceDefault || o.GetName() != Name && o.GetLabels()[discoveryv1.LabelServiceName] != Name {
		return nil
	}
	return []reconcile.Key{{}}
}

func (c *controller) keep(ctx context.Context) error {
	if err := c.keepService(ctx); err != nil {
		return fmt.Errorf("service %s: %w", Name, err)
	}
	servers := c.servers()
	byPort, err := addressesOf(servers)
	if err != nil {
		return err
	}
	wanted := slicesOf(byPort)
	c.tellReserved(ctx, wanted[0], servers)
	return errors.Join(c.keepEndpoints(ctx, servers, endpointsOf(byPort)), c.keepSlices(ctx, wanted))
}

// keepService leaves the one that is there as it is: people may annotate it.
func (c *controller) keepService(ctx context.Context) error {
	_, err := c.services.Get(reconcile.Key{Namespace: metav1.NamespaceDefault, Name: Name})
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = c.env.Client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: c.address.String(),
			Ports:     []corev1.ServicePort{{Name: portName, Port: httpsPort, TargetPort: intstr.FromInt32(c.targetPort)}},
		},
	}, metav1.CreateOptions{})
	return ignoreExisting(err)
}

// keepEndpoints brings the Endpoints to what the servers are, when these changed and now and then.
func (c *controller) keepEndpoints(ctx context.Context, servers []Server, want *corev1.Endpoints) error {
	if slices.EqualFunc(servers, c.told, sameServer) && c.env.Now().Sub(c.toldAt) < endpointsReadInterval {
		return nil
	}
	err := c.writeEndpoints(ctx, want)
	if err == nil {
		c.told, c.toldAt = servers, c.env.Now()
	}
	return err
}

func sameServer(a, b Server) bool {
	return a.Endpoint == b.Endpoint && slices.Equal(a.Addresses, b.Addresses)
}

// writeEndpoints asks for the one object: a cache of all Endpoints would cost more.
func (c *controller) writeEndpoints(ctx context.Context, want *corev1.Endpoints) error {
	endpoints := c.env.Client.CoreV1().Endpoints(metav1.NamespaceDefault)
	have, err := endpoints.Get(ctx, Name, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		_, err = endpoints.Create(ctx, want, metav1.CreateOptions{})
		return ignoreExisting(err)
	case err != nil || apiequality.Semantic.DeepEqual(have.Subsets, want.Subsets):
		return err
	}
	next := have.DeepCopy()
	next.Subsets = want.Subsets
	_, err = endpoints.Update(ctx, next, metav1.UpdateOptions{})
	return err
}

// keepSlices also removes those of ports that no server has any more.
func (c *controller) keepSlices(ctx context.Context, wanted []*discoveryv1.EndpointSlice) error {
	stored, err := c.slices.List(metav1.NamespaceDefault, labels.SelectorFromSet(sliceLabels()))
	if err != nil {
		return err
	}
	var errs []error
	for _, want := range wanted {
		errs = append(errs, c.keepSlice(ctx, stored, want))
	}
	for _, have := range stored {
		if !slices.ContainsFunc(wanted, func(s *discoveryv1.EndpointSlice) bool { return s.Name == have.Name }) {
			err := c.env.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Delete(ctx, have.Name, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (c *controller) keepSlice(ctx context.Context, stored []*discoveryv1.EndpointSlice, want *discoveryv1.EndpointSlice) error {
	client := c.env.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	i := slices.IndexFunc(stored, func(s *discoveryv1.EndpointSlice) bool { return s.Name == want.Name })
	if i < 0 {
		_, err := client.Create(ctx, want, metav1.CreateOptions{})
		return ignoreExisting(err)
	}
	have := stored[i]
	same := have.Annotations[reserved.Annotation] == want.Annotations[reserved.Annotation]
	if same && apiequality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) && apiequality.Semantic.DeepEqual(have.Ports, want.Ports) {
		return nil
	}
	next := have.DeepCopy()
	next.Endpoints, next.Ports = want.Endpoints, want.Ports
	if text, ok := want.Annotations[reserved.Annotation]; ok {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, reserved.Annotation, text)
	}
	_, err := client.Update(ctx, next, metav1.UpdateOptions{})
	return err
}

// ignoreExisting: the cache was behind, and an event is on its way.
func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
