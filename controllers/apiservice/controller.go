package apiservice

import (
	"context"
	"log/slog"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Resource is where APIServices are.
var Resource = apiregistrationv1.SchemeGroupVersion.WithResource("apiservices")

const (
	// probeInterval is how often a server that answered is asked again; upstream's.
	probeInterval = 30 * time.Second
	// failedProbeInterval is how soon one that did not answer is asked again.
	failedProbeInterval = 5 * time.Second
	// serviceIndex finds the APIServices of a Service.
	serviceIndex = "setpoint/service"
)

// Prober asks the server of an APIService for its group version.
type Prober interface {
	Probe(ctx context.Context, service *apiregistrationv1.APIService) error
}

// Config is what the controller needs for one term.
type Config struct {
	Client    aggregator.Interface
	Informers informers.SharedInformerFactory
	// APIServices holds all of them; nil: the API has none.
	APIServices cache.SharedIndexInformer
	// Definitions holds all CustomResourceDefinitions; nil: the API has none.
	Definitions cache.SharedIndexInformer
	// Local are the APIServices of the built-in group versions, without labels.
	Local  []*apiregistrationv1.APIService
	Prober Prober
	Logger *slog.Logger
}

// controller is one term.
type controller struct {
	cfg   Config
	local map[string]*apiregistrationv1.APIService
}

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Services().Informer()
	f.Discovery().V1().EndpointSlices().Informer()
	return nil
}

// Run keeps the APIServices until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	if cfg.APIServices == nil || cfg.Prober == nil {
		<-ctx.Done()
		return nil
	}
	c := &controller{cfg: cfg, local: map[string]*apiregistrationv1.APIService{}}
	for _, s := range cfg.Local {
		c.local[s.Name] = s
	}
	if err := reconcile.EnsureIndex(cfg.APIServices, serviceIndex, servicesOf); err != nil {
		return err
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "apiservice",
		Reconcile: c.reconcile,
		Sources:   c.sources(),
		Feeds:     []reconcile.Feed{c.feedLocal},
		Logger:    cfg.Logger,
	})
}

func (c *controller) sources() []reconcile.Source {
	sources := []reconcile.Source{
		reconcile.Self(c.cfg.APIServices),
		{Informer: c.cfg.Informers.Core().V1().Services().Informer(), Map: func(before, after metav1.Object) []reconcile.Key {
			return c.behind(latest(before, after).GetNamespace(), latest(before, after).GetName())
		}},
		{Informer: c.cfg.Informers.Discovery().V1().EndpointSlices().Informer(), Map: func(before, after metav1.Object) []reconcile.Key {
			slice := latest(before, after)
			return c.behind(slice.GetNamespace(), slice.GetLabels()[discoveryv1.LabelServiceName])
		}},
	}
	if c.cfg.Definitions != nil {
		sources = append(sources, reconcile.Source{Informer: c.cfg.Definitions, Map: versionsOf})
	}
	return sources
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
	found, err := reconcile.ByIndex[*apiregistrationv1.APIService](c.cfg.APIServices, serviceIndex, namespace+"/"+name)
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
	var have *apiregistrationv1.APIService
	if obj, found, err := c.cfg.APIServices.GetStore().GetByKey(key.Name); err != nil {
		return 0, err
	} else if found {
		have = obj.(*apiregistrationv1.APIService)
		ctx = reconcile.WithCause(ctx, have)
	}
	step := register(have, c.wanted(key.Name))
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
func (c *controller) wanted(name string) *apiregistrationv1.APIService {
	if s := c.local[name]; s != nil {
		return labelled(s, manageOnStart)
	}
	if c.cfg.Definitions == nil {
		return nil
	}
	for _, obj := range c.cfg.Definitions.GetStore().List() {
		if s := ofDefinition(obj.(*apiextensionsv1.CustomResourceDefinition), name); s != nil {
			return labelled(s, manageContinuously)
		}
	}
	return nil
}

// write takes one step; what changed meanwhile has caused an event.
func (c *controller) write(ctx context.Context, have *apiregistrationv1.APIService, s step) error {
	services := c.cfg.Client.ApiregistrationV1().APIServices()
	var err error
	switch {
	case s.create != nil:
		_, err = services.Create(ctx, s.create, metav1.CreateOptions{})
	case s.update != nil:
		_, err = services.Update(ctx, s.update, metav1.UpdateOptions{})
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
		if err := c.cfg.Prober.Probe(ctx, have); err != nil {
			verdict, again = failed(apiregistrationv1.ConditionFalse, "FailedDiscoveryCheck", "%s", err), failedProbeInterval
		}
	}
	return again, c.writeStatus(ctx, have, verdict)
}

// writeStatus writes only what is new.
func (c *controller) writeStatus(ctx context.Context, have *apiregistrationv1.APIService, verdict condition) error {
	next := withCondition(have, verdict, metav1.Now())
	if apiequality.Semantic.DeepEqual(have.Status, next.Status) {
		return nil
	}
	_, err := c.cfg.Client.ApiregistrationV1().APIServices().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
