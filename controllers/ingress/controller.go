package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

const (
	controllerName = "ingress-controller"
	// ClassName is that of the class that is made.
	ClassName = "setpoint"
	// eventsMax is how many problems of one Ingress have an event: events of all namespaces wait in one queue.
	eventsMax = 20
	// secretsInterval is how often Secrets of certificates are looked at, which nothing follows.
	secretsInterval = time.Minute
)

var (
	ingresses = reconcile.KindOf[*networkingv1.Ingress](networkingv1.SchemeGroupVersion.WithResource("ingresses"))
	classes   = reconcile.KindOf[*networkingv1.IngressClass](networkingv1.SchemeGroupVersion.WithResource("ingressclasses"))
)

// New keeps the status of Ingresses.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name: controllerName, Reads: []reconcile.Read{ingresses, classes, reconcile.Services, reconcile.Nodes}, Run: run,
	}
}

// everything is the only key: whether an Ingress is served as it says depends on all others.
var everything = reconcile.Key{Name: "ingresses"}

type controller struct {
	env       *reconcile.Env
	ingresses reconcile.Cache[*networkingv1.Ingress]
	classes   reconcile.Cache[*networkingv1.IngressClass]
	services  reconcile.Cache[*corev1.Service]
	nodes     reconcile.Cache[*corev1.Node]
	told      map[problem]bool
}

// problem is one that has its event.
type problem struct {
	uid             string
	reason, message string
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, ingresses: ingresses.From(env), classes: classes.From(env), services: reconcile.Services.From(env),
		nodes: reconcile.Nodes.From(env),
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "ingress", Reconcile: c.reconcile, Workers: 1, Rests: reconcile.RestsWhole, Env: env,
		Sources: []reconcile.Source{
			reconcile.Changes(c.ingresses, always), reconcile.Changes(c.classes, always), reconcile.Changes(c.services, c.serviceChanged),
			reconcile.Changes(c.nodes, nodeChanged),
		},
	})
}

func always(_, _ metav1.Object) []reconcile.Key { return []reconcile.Key{everything} }

// serviceChanged: only where there are Ingresses do Services matter, and only what they are for.
func (c *controller) serviceChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil && after != nil && before.GetGeneration() == after.GetGeneration() && before.GetGeneration() != 0 {
		return nil
	}
	if all, err := c.ingresses.List("", nil); err == nil && len(all) == 0 {
		return nil
	}
	return always(before, after)
}

// nodeChanged: only whether a node serves, and where, matters.
func nodeChanged(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Node)
	is, _ := after.(*corev1.Node)
	if !table.AddressesChanged(was, is) {
		return nil
	}
	return always(before, after)
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	all, err := c.ingresses.List("", nil)
	if err != nil {
		return 0, err
	}
	nodes, err := c.nodes.List("", nil)
	if err != nil {
		return 0, err
	}
	known, err := c.classes.List("", nil)
	if err != nil {
		return 0, err
	}
	var addresses []networkingv1.IngressLoadBalancerIngress
	for _, at := range table.Addresses(nodes) {
		addresses = append(addresses, networkingv1.IngressLoadBalancerIngress{IP: at})
	}
	failed := c.ensureClass(ctx, known, len(addresses) > 0)
	ours := table.Ours(known, all)
	for _, i := range ours {
		failed = errors.Join(failed, c.setStatus(ctx, i, addresses))
	}
	c.tell(c.problems(ctx, known, ours))
	if len(table.Secrets(ours)) > 0 {
		return secretsInterval, failed
	}
	return 0, failed
}

// ensureClass makes the class if nodes serve it and it is not there.
func (c *controller) ensureClass(ctx context.Context, known []*networkingv1.IngressClass, served bool) error {
	if !served {
		return nil
	}
	annotations := map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	for _, class := range known {
		if class.Name == ClassName {
			return nil
		}
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			annotations = nil // there must not be two
		}
	}
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: ClassName, Annotations: annotations},
		Spec:       networkingv1.IngressClassSpec{Controller: table.Controller},
	}
	_, err := c.env.Client.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create IngressClass %s: %w", ClassName, err)
	}
	return nil
}

// setStatus writes the addresses, if they are others.
func (c *controller) setStatus(ctx context.Context, i *networkingv1.Ingress, addresses []networkingv1.IngressLoadBalancerIngress) error {
	if apiequality.Semantic.DeepEqual(i.Status.LoadBalancer.Ingress, addresses) {
		return nil
	}
	changed := i.DeepCopy()
	changed.Status.LoadBalancer.Ingress = addresses
	client := c.env.Client.NetworkingV1().Ingresses(i.Namespace)
	_, err := client.UpdateStatus(reconcile.WithCause(ctx, i), changed, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of Ingress %s/%s: %w", i.Namespace, i.Name, err)
	}
	return nil
}

// problems are those of the table that nodes serve by.
func (c *controller) problems(
	ctx context.Context, known []*networkingv1.IngressClass, ours []*networkingv1.Ingress,
) []table.Problem {
	tooMany, problems := leftOut(ours)
	_, found := table.Build(table.Input{
		Classes: known, Ingresses: ours,
		Service: func(namespace, name string) *corev1.Service {
			service, err := c.services.Get(reconcile.Key{Namespace: namespace, Name: name})
			if err != nil {
				return nil
			}
			return service
		},
		Slices: table.NoSlices,
		Certificate: func(namespace, name string) (*tls.Certificate, error) {
			if tooMany[types.NamespacedName{Namespace: namespace, Name: name}] {
				return nil, gatewayapi.ErrCut
			}
			return c.certificate(ctx, namespace, name)
		},
	})
	return append(problems, found...)
}

// leftOut are the Secrets that no node reads, because too many are named, and what is to be told of it.
func leftOut(ours []*networkingv1.Ingress) (cut map[types.NamespacedName]bool, problems []table.Problem) {
	_, names := gatewayapi.Divide(table.Secrets(ours))
	cut = map[types.NamespacedName]bool{}
	for _, name := range names {
		cut[name] = true
	}
	for _, i := range ours {
		count := 0
		for _, t := range i.Spec.TLS {
			if cut[types.NamespacedName{Namespace: i.Namespace, Name: t.SecretName}] {
				count++
			}
		}
		if count > 0 {
			problems = append(problems, table.Problem{Ingress: i, Reason: "TooManySecrets", Message: fmt.Sprintf(
				"%d of its Secrets are not read: more than %d are named in the cluster, and namespace %s has its share of them", count, gatewayapi.NamedMax, i.Namespace,
			)})
		}
	}
	return cut, problems
}

func (c *controller) certificate(ctx context.Context, namespace, name string) (*tls.Certificate, error) {
	secret, err := c.env.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return table.CertificateOf(secret)
}

// tell writes an event of each problem that is new, eventsMax of one Ingress.
func (c *controller) tell(problems []table.Problem) {
	told, ofOne := map[problem]bool{}, map[types.UID]int{}
	event := func(of *networkingv1.Ingress, reason, message string) {
		key := problem{string(of.UID), reason, message}
		if !told[key] && !c.told[key] {
			c.env.Events.Event(of, corev1.EventTypeWarning, reason, message)
		}
		told[key] = true
	}
	for _, p := range problems {
		ofOne[p.Ingress.UID]++
		switch n := ofOne[p.Ingress.UID]; {
		case n <= eventsMax:
			event(p.Ingress, p.Reason, p.Message)
		case n == eventsMax+1:
			event(p.Ingress, "ManyProblems", fmt.Sprintf("it has more than %d problems: the others have no event", eventsMax))
		}
	}
	c.told = told
}
