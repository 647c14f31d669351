package setpointtest_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// copier is an operator: for each ConfigMap with the label copy it makes another one. The careful one gives the copy
// a name that follows from the origin; the careless one looks into its cache and lets the server make a name.
type copier struct {
	client   kubernetes.Interface
	careless bool
}

// Start implements setpointtest.Runnable.
func (o copier) Start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace("default"))
	maps := factory.Core().V1().ConfigMaps()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(object any) {
		if m, ok := object.(*corev1.ConfigMap); ok && m.Labels["copy"] != "" {
			queue.Add(m.Name)
		}
	}
	_, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	factory.WaitForCacheSyncWithContext(ctx)
	context.AfterFunc(ctx, queue.ShutDown)
	for {
		name, ended := queue.Get()
		if ended {
			return nil
		}
		copies, err := maps.Lister().List(labels.SelectorFromSet(labels.Set{"copy-of": name}))
		if err == nil && len(copies) == 0 {
			err = o.copy(ctx, name)
		}
		if err != nil {
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

func (o copier) copy(ctx context.Context, name string) error {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-copy", Labels: map[string]string{"copy-of": name}}}
	if o.careless {
		made.Name, made.GenerateName = "", name+"-"
	}
	_, err := o.client.CoreV1().ConfigMaps("default").Create(ctx, made, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func exploration(careless bool) setpointtest.Exploration {
	return setpointtest.Exploration{
		Config: setpointtest.Config{Loops: setpointtest.APIOnly},
		Program: func(c *setpointtest.Cluster) setpointtest.Runnable {
			return copier{c.Kubernetes(), careless}
		},
		Scenario: func(c *setpointtest.Cluster) {
			c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {copy: please}}}")
		},
	}
}

// TestExploreFindsTheBug: a copy too many, when an answer is lost and the cache does not show it yet.
func TestExploreFindsTheBug(t *testing.T) {
	findings := setpointtest.Find(t, exploration(true))
	for _, finding := range findings {
		t.Log(finding)
		if strings.HasPrefix(finding.Fault, "LoseAnswer and StaleCache at write 1, create configmaps") && strings.Contains(finding.What, "+   name: ") {
			return
		}
	}
	t.Errorf("the careless operator was not found out: %v", findings)
}

func TestExploreFindsNothing(t *testing.T) {
	setpointtest.Explore(t, exploration(false))
}
