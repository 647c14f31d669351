package dnsservice

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/clusterdns"
)

const (
	dnsPort     = 53
	metricsPort = 9153
)

// ErrFlag says what is wrong with the flag.
var ErrFlag = errors.New("want 'builtin' or 'none'")

// Parse reads the flag; "" is "builtin". none: others serve DNS, if anybody does.
func Parse(text string) (none bool, err error) {
	switch text {
	case "", "builtin":
		return false, nil
	case "none":
		return true, nil
	}
	return false, fmt.Errorf("--dns %q: %w", text, ErrFlag)
}

// New keeps the Service, at the address given, or, with none, keeps it away.
func New(none bool, address netip.Addr) reconcile.Controller {
	return reconcile.Controller{Name: "dns-service-controller", Reads: []reconcile.Read{reconcile.Services},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			c := &controller{env, none, address, reconcile.Services.From(env)}
			return c.run(ctx)
		}}
}

type controller struct {
	env      *reconcile.Env
	none     bool
	address  netip.Addr
	services reconcile.Cache[*corev1.Service]
}

// key is the only one.
var key = reconcile.Key{Namespace: metav1.NamespaceSystem, Name: clusterdns.Service}

func (c *controller) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name: "dnsservice",
		Reconcile: func(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
			return 0, c.keep(ctx)
		},
		Sources: []reconcile.Source{reconcile.Changes(c.services, ours)},
		Feeds:   []reconcile.Feed{reconcile.Once(key)},
		Workers: 1,
		Env:     c.env,
	})
}

func ours(before, after metav1.Object) []reconcile.Key {
	o := after
	if o == nil {
		o = before
	}
	if o.GetNamespace() != key.Namespace || o.GetName() != key.Name {
		return nil
	}
	return []reconcile.Key{key}
}

func (c *controller) keep(ctx context.Context) error {
	have, err := c.services.Get(key)
	missing := apierrors.IsNotFound(err)
	client := c.env.Client.CoreV1().Services(key.Namespace)
	switch {
	case err != nil && !missing:
		return err
	case c.none && !missing && have.Labels[clusterdns.ProxyLabel] == clusterdns.ProxyName:
		err = client.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the cache was behind, and an event is on its way
		}
	case !c.none && missing:
		_, err = client.Create(ctx, service(c.address), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("service %s: %w", key.Name, err)
	}
	return nil
}

// service has upstream's names and labels, by which policies and programs find it.
func service(address netip.Addr) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: clusterdns.Service,
			Labels: map[string]string{
				"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS", clusterdns.ProxyLabel: clusterdns.ProxyName,
			},
			Annotations: map[string]string{"prometheus.io/port": fmt.Sprint(metricsPort), "prometheus.io/scrape": "true"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: address.String(),
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: dnsPort, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", Port: dnsPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", Port: metricsPort, Protocol: corev1.ProtocolTCP},
			},
		},
	}
}
