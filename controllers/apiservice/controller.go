package apiservice

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// probeInterval is how often a server that answered is asked again; upstream's.
	probeInterval = 30 * time.Second
	// failedProbeInterval is how soon one that did not answer is asked again.
	failedProbeInterval = 5 * time.Second
)

// Prober asks the server of an APIService for its group version.
type Prober interface {
	Probe(ctx context.Context, service *apiregistrationv1.APIService) error
}

// fieldManager is the component that writes the status of APIServices upstream.
const fieldManager = "kube-apiserver"

// apiServices are found by the Service that they name too.
var (
	byService   = reconcile.Index{Name: "setpoint/service", Keys: servicesOf}
	apiServices = reconcile.KindOf[*apiregistrationv1.APIService](
		apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"),
	).By(byService)
)

// New keeps the APIServices. local are those of the built-in group versions, without labels;
// prober asks the servers behind the others, and nil leaves all of them alone.
func New(local []*apiregistrationv1.APIService, prober Prober) reconcile.Controller {
	return reconcile.Controller{
		Name:  "apiservice-controller",
		Reads: []reconcile.Read{apiServices, reconcile.Services, reconcile.EndpointSlices, reconcile.CustomResourceDefinitions},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, local, prober) },
		OfAPI: true,
	}
}

// controller is one term.
type controller struct {
	env         *reconcile.Env
	local       map[string]*apiregistrationv1.APIService
	prober      Prober
	apiServices reconcile.Cache[*apiregistrationv1.APIService]
	services    reconcile.Cache[*corev1.Service]
	slices      reconcile.Cache[*discoveryv1.EndpointSlice]
	definitions reconcile.Cache[*apiextensionsv1.CustomResourceDefinition]
}

func run(ctx context.Context, env *reconcile.Env, local []*apiregistrationv1.APIService, prober Prober) error {
	if prober == nil {
		return reconcile.Idle(ctx)
	}
	c := &controller{
		env: env, local: map[string]*apiregistrationv1.APIService{}, prober: prober,
		apiServices: apiServices.From(env), services: reconcile.Services.From(env), slices: reconcile.EndpointSlices.From(env),
		definitions: reconcile.CustomResourceDefinitions.From(env),
	}
	for _, s := range local {
		c.local[s.Name] = s
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "apiservice",
		Reconcile: c.reconcile,
		Sources:   c.sources(),
		Feeds:     []reconcile.Feed{c.feedLocal},
		Env:       env,
	})
}

func (c *controller) sources() []reconcile.Source {
	return []reconcile.Source{
		reconcile.Self(c.apiServices),
		reconcile.Changes(c.services, func(before, after metav1.Object) []reconcile.Key {
			return c.behind(latest(before, after).GetNamespace(), latest(before, after).GetName())
		}),
		reconcile.Changes(c.slices, func(before, after metav1.Object) []reconcile.Key {
			slice := latest(before, after)
			return c.behind(slice.GetNamespace(), slice.GetLabels()[discoveryv1.LabelServiceName])
		}),
		reconcile.Changes(c.definitions, versionsOf),
	}
}

func latest(before, after metav1.Object) metav1.Object {
	if after != nil {
		return after
	}
	return before
}

// feedLocal looks once at each group version that must be there.
func (c *controller) feedLocal(_ context.Context, add func(reconcile.Key)) {
	for name := range c.local {
		add(reconcile.Key{Name: name})
	}
}

// servicesOf is the Service that an APIService names.
func servicesOf(o metav1.Object) []string {
	if s := o.(*apiregistrationv1.APIService).Spec.Service; s != nil {
		return []string{s.Namespace + "/" + s.Name}
	}
	return nil
}

// behind are the APIServices that name a Service.
func (c *controller) behind(namespace, name string) []reconcile.Key {
	found, err := c.apiServices.ByIndex(byService, namespace+"/"+name)
	if err != nil {
		return nil
	}
	var keys []reconcile.Key
	for _, s := range found {
		keys = append(keys, reconcile.KeyOf(s))
	}
	return keys
}

// versionsOf are the APIServices of a definition's versions, before and after a change.
func versionsOf(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		if d, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			for _, v := range d.Spec.Versions {
				keys = append(keys, reconcile.Key{Name: v.Name + "." + d.Spec.Group})
			}
		}
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	have, err := c.apiServices.Get(key)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	if have != nil {
		ctx = reconcile.WithCause(ctx, have)
	}
	wanted, err := c.wanted(key.Name)
	if err != nil {
		return 0, err
	}
	step := register(have, wanted)
	if step.create != nil || step.update != nil || step.remove {
		return 0, c.write(ctx, have, step)
	}
	if have == nil {
		return 0, nil
	}
	if have.Spec.Service == nil {
		return 0, c.writeStatus(ctx, have, helper.NewLocalAvailableAPIServiceCondition())
	}
	return c.judge(ctx, have)
}

// wanted is how an APIService should be that this API answers for itself; nil: it does not.
func (c *controller) wanted(name string) (*apiregistrationv1.APIService, error) {
	if s := c.local[name]; s != nil {
		return labelled(s, manageOnStart), nil
	}
	definitions, err := c.definitions.List("", nil)
	for _, d := range definitions {
		if s := ofDefinition(d, name); s != nil {
			return labelled(s, manageContinuously), nil
		}
	}
	return nil, err
}

// write takes one step; what changed meanwhile has caused an event.
func (c *controller) write(ctx context.Context, have *apiregistrationv1.APIService, s step) error {
	services := c.env.Aggregator.ApiregistrationV1().APIServices()
	var err error
	switch {
	case s.create != nil:
		_, err = services.Create(ctx, s.create, metav1.CreateOptions{FieldManager: fieldManager})
	case s.update != nil:
		_, err = services.Update(ctx, s.update, metav1.UpdateOptions{FieldManager: fieldManager})
	default:
		err = services.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// judge asks the server behind an APIService and writes down what it found.
func (c *controller) judge(ctx context.Context, have *apiregistrationv1.APIService) (time.Duration, error) {
	again := probeInterval
	verdict, reachable := c.lookUp(have)
	if reachable {
		if err := c.prober.Probe(ctx, have); err != nil {
			verdict, again = failed(apiregistrationv1.ConditionFalse, "FailedDiscoveryCheck", "%s", err), failedProbeInterval
		}
	}
	return again, c.writeStatus(ctx, have, verdict)
}

// writeStatus writes only what is new.
func (c *controller) writeStatus(ctx context.Context, have *apiregistrationv1.APIService, verdict condition) error {
	next := withCondition(have, verdict, metav1.NewTime(c.env.Now()))
	if apiequality.Semantic.DeepEqual(have.Status, next.Status) {
		return nil
	}
	_, err := c.env.Aggregator.ApiregistrationV1().APIServices().UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
