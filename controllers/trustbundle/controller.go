package trustbundle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// everything is the only key: each pass looks at all bundles of the signer.
var everything = reconcile.Key{Name: "trust bundles"}

// New publishes a PEM bundle; an empty one publishes nothing.
func New(rootCA []byte) reconcile.Controller {
	return reconcile.Controller{
		Name: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
		Run: func(ctx context.Context, env *reconcile.Env) error {
			if len(rootCA) == 0 {
				return reconcile.Idle(ctx)
			}
			c := &controller{env: env, text: string(rootCA), bundles: newBundles(env.Client)}
			return c.run(ctx)
		},
	}
}

type controller struct {
	env     *reconcile.Env
	text    string
	bundles cache.SharedIndexInformer
}

// newBundles follows the bundles of this signer alone, for one term.
func newBundles(client kubernetes.Interface) cache.SharedIndexInformer {
	return certificatesinformers.NewFilteredClusterTrustBundleInformer(client, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.signerName=" + Signer
	})
}

func (c *controller) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.bundles.RunWithContext(ctx) })
	changed := func(_, _ metav1.Object) []reconcile.Key { return []reconcile.Key{everything} }
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "trustbundle",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{{Informer: c.bundles, Map: changed}},
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Env:       c.env,
	})
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	have, err := certificateslisters.NewClusterTrustBundleLister(c.bundles.GetIndexer()).List(labels.Everything())
	if err != nil {
		return 0, err
	}
	return 0, c.act(ctx, planOf(c.text, have))
}

// act deletes nothing before the new bundle is there.
func (c *controller) act(ctx context.Context, p plan) error {
	bundles, err := c.env.Client.CertificatesV1().ClusterTrustBundles(), error(nil)
	switch {
	case p.create != nil:
		_, err = bundles.Create(ctx, p.create, metav1.CreateOptions{})
	case p.update != nil:
		_, err = bundles.Update(reconcile.WithCause(ctx, p.update), p.update, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("publish trust bundle: %w", err)
	}
	var errs []error
	for _, old := range p.remove {
		err := bundles.Delete(reconcile.WithCause(ctx, old), old.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete trust bundle %s: %w", old.Name, err))
		}
	}
	return errors.Join(errs...)
}
