package envtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// greeter is an operator: each ConfigMap with the label greet gets a Secret that it owns, and a note when it was
// last looked at every hour.
type greeter struct {
	client.Client
}

const greet = "greet"

func (g greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	origin := &corev1.ConfigMap{}
	if err := g.Get(ctx, request.NamespacedName, origin); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if origin.Labels[greet] == "" || origin.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: origin.Namespace, Name: origin.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, g.Client, secret, func() error {
		secret.Data = map[string][]byte{"text": []byte("hello " + origin.Labels[greet])}
		return controllerutil.SetControllerReference(origin, secret, g.Scheme())
	})
	return ctrl.Result{}, err
}

// newManager returns one with the greeter, on the cluster of a client.
func newManager(t testing.TB, configuration *rest.Config) ctrl.Manager {
	t.Helper()
	manager, err := ctrl.NewManager(configuration, ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // several managers in one process
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(greeter{manager.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

const origin = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {greet: world}}
`

// follow plays the life of one object.
func follow(t *testing.T, c *setpointtest.Cluster) {
	t.Helper()
	c.Run(newManager(t, c.RESTConfig()))
	c.Apply(origin)
	c.Eventually("secret/a", setpointtest.Exists)
	c.Delete("secret/a")
	c.Eventually("secret/a", setpointtest.Exists)
	c.NoWritesWhenQuiet()
	c.Delete("configmap/a")
	c.Eventually("secret/a", setpointtest.Gone) // the garbage collector
}

func TestOperator(t *testing.T) {
	follow(t, setpointtest.Start(t, setpointtest.Config{}))
}

func TestOperatorInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follow(t, setpointtest.Start(t, setpointtest.Config{}))
	})
}

// TestOperatorUnderFaults: whatever happens to its writes, the operator ends at the same.
func TestOperatorUnderFaults(t *testing.T) {
	for name, effect := range map[string]setpointtest.Effect{
		"conflict": setpointtest.Conflict, "unavailable": setpointtest.Unavailable, "unreachable": setpointtest.Unreachable,
		"lost answer": setpointtest.LoseAnswer, "late": setpointtest.Delay(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := setpointtest.Start(t, setpointtest.Config{})
				c.Inject(setpointtest.Fault{Verb: "create", Kind: "secrets", Times: 3, Effect: effect})
				c.Run(newManager(t, c.RESTConfig()))
				c.Apply(origin)
				c.Eventually("secret/a", setpointtest.Exists)
				c.NoWritesWhenQuiet()
			})
		})
	}
}

// TestStaleCache: the operator reads an old state for a while, and ends at the same.
func TestStaleCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		manager := newManager(t, c.RESTConfig())
		c.Run(manager)
		c.Apply(origin)
		c.Eventually("secret/a", setpointtest.Exists)
		release := c.HoldWatches("secrets")
		c.Delete("secret/a")
		c.Advance(time.Minute)
		if c.Get("secret/a") != nil {
			t.Fatal("the operator saw through a held watch")
		}
		stale := &corev1.Secret{}
		if err := manager.GetClient().Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "a"}, stale); err != nil {
			t.Errorf("its cache is not stale: %v", err)
		}
		release()
		c.Eventually("secret/a", setpointtest.Exists)
	})
}
