package manager_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/setpointtest/beside"
	"github.com/setpoint-io/setpoint/setpointtest/envtest/manager"
)

// Clusters of both packages have managers.
var _, _ manager.Cluster = (*setpointtest.Cluster)(nil), (*beside.Cluster)(nil)

// labeller is an operator: it labels the ConfigMaps of the test. Others hold certificates, which differ in each world of Explore.
type labeller struct{ client.Client }

func (l labeller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &corev1.ConfigMap{}
	if request.Name != "a" {
		return ctrl.Result{}, nil
	}
	if err := l.Get(ctx, request.NamespacedName, object); err != nil || object.Labels["seen"] != "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := object.DeepCopy()
	object.Labels = map[string]string{"seen": "yes"}
	return ctrl.Result{}, l.Patch(ctx, object, client.MergeFrom(before))
}

func newManager(t testing.TB, c *setpointtest.Cluster, options ctrl.Options) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(c.RESTConfig(), options)
	if err == nil {
		err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(labeller{mgr.GetClient()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"

var seen = setpointtest.Field("seen", "yes", "metadata", "labels", "seen")

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		c.Run(newManager(t, c, manager.Options(c)))
		c.Apply(object)
		c.Eventually("configmap/a", seen)
		c.Advance(time.Hour)
	})
}

// TestInParallel: several managers of a process, with the same controller and no port of their own.
func TestInParallel(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
			c.Run(newManager(t, c, manager.Options(c)))
			c.Apply(object)
			c.Eventually("configmap/a", seen)
		})
	}
}

func TestInExplore(t *testing.T) {
	setpointtest.Explore(t, setpointtest.Exploration{
		Config:  setpointtest.Config{Loops: setpointtest.APIOnly},
		Program: func(c *setpointtest.Cluster) setpointtest.Runnable { return newManager(t, c, manager.Options(c)) },
		Scenario: func(c *setpointtest.Cluster) {
			c.Apply(object)
			c.Eventually("configmap/a", seen)
		},
	})
}

// playedAlone marks the process that plays TestPlainOptions, which it ends.
const playedAlone = "SETPOINTTEST_PLAIN_OPTIONS"

// TestPlainOptions: a manager with a port in a bubble is told.
func TestPlainOptions(t *testing.T) {
	if os.Getenv(playedAlone) != "" {
		synctest.Test(t, func(t *testing.T) {
			c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
			options := manager.Options(c)
			options.Metrics.BindAddress = "127.0.0.1:0" // the default is a port that all share
			c.Run(newManager(t, c, options))
			c.Advance(time.Hour)
		})
		return
	}
	alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPlainOptions$", "-test.timeout=5m")
	alone.Env = append(os.Environ(), playedAlone+"=yes", "SETPOINTTEST_STANDSTILL=2s")
	out, err := alone.CombinedOutput()
	for _, says := range []string{"the time of the bubble of TestPlainOptions has stood still for 2s, because this waits for the network (the process is listening at 127.0.0.1:",
		"sigs.k8s.io/controller-runtime/pkg/", "make the manager with the options that manager.Options(c) returns"} {
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%v: it did not say %q but\n%s", err, says, out)
		}
	}
}
