package scenes

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/test/judges"
)

const (
	nodes = 3
	// patienceMax is for a machine that has other things to do.
	patienceMax  = 3 * time.Minute
	lookInterval = 50 * time.Millisecond
)

// TestScenes plays all scenes at the same time, each in a namespace of its own: none may disturb another.
func TestScenes(t *testing.T) {
	client := started(t, setpoint.Config{SimulatedNodes: nodes})
	for name, play := range map[string]func(*scene){
		"a-deployment-heals-itself":         healing,
		"a-rollout-that-cannot-go-on":       failingRollout,
		"a-drain-with-a-budget":             drain,
		"an-autoscaler-follows-the-load":    autoscaling,
		"a-job-is-done-whatever-goes-wrong": job,
		"replicas-without-end":              withoutEnd,
		"a-quota-without-room":              withoutRoom,
		"a-webhook-that-nobody-answers":     refusedByWebhook,
		"a-webhook-that-refuses":            webhookThatRefuses,
		"two-with-the-same-selector":        sameSelector,
		"owners-in-a-circle":                ownersInACircle,
		"an-index-that-is-none":             strangeIndex,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{T: t, client: client, namespace: name}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			play(s)
		})
	}
}

// started is a client of a cluster that serves until the test ends.
func started(t *testing.T, config setpoint.Config) kubernetes.Interface {
	t.Helper()
	cluster, err := setpoint.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	judged(t, cluster)
	return clientOf(t, cluster)
}

// judged lets a court hear every version of every object that is stored until the test ends: none may mislead who waits for it.
func judged(t *testing.T, cluster *setpoint.Cluster) {
	t.Helper()
	access, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	record := judges.Follow(t, access, judges.Resources...)
	t.Cleanup(func() { record.Judged(t).Report(t) })
}

func clientOf(t *testing.T, cluster *setpoint.Cluster) kubernetes.Interface {
	t.Helper()
	access, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	access.QPS = -1
	return kubernetes.NewForConfigOrDie(access)
}

// scene is one, with its client and namespace.
type scene struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
}

// see waits until look, which says what it saw, sees what is wanted.
func (s *scene) see(what string, look look) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patienceMax)
	defer cancel()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	var last string
	for {
		saw, ok := look(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			last = saw
		}
		select {
		case <-ctx.Done():
			s.Fatalf("not within %v: %s; last seen: %s", patienceMax, what, last)
		case <-tick.C:
		}
	}
}

// deploy makes a Deployment of so many pods, each with the labels app=name.
func (s *scene) deploy(name string, replicas int32, change func(*appsv1.Deployment)) {
	s.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "shop:v1", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}},
			},
		},
	}
	if change != nil {
		change(d)
	}
	if _, err := s.client.AppsV1().Deployments(s.namespace).Create(s.Context(), d, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// change changes a Deployment, again if somebody else was faster.
func (s *scene) change(name string, change func(*appsv1.Deployment)) {
	s.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		d, err := s.client.AppsV1().Deployments(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(d)
		_, err = s.client.AppsV1().Deployments(s.namespace).Update(s.Context(), d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// seeDeployment waits for a Deployment whose status is of its newest version.
func (s *scene) seeDeployment(name, what string, wanted func(*appsv1.Deployment) bool) {
	s.Helper()
	s.see(name+": "+what, func(ctx context.Context) (string, bool) {
		d, err := s.client.AppsV1().Deployments(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", d.Status), d.Status.ObservedGeneration == d.Generation && wanted(d)
	})
}

func complete(d *appsv1.Deployment) bool {
	n := *d.Spec.Replicas
	return d.Status.Replicas == n && d.Status.UpdatedReplicas == n && d.Status.AvailableReplicas == n
}

// pods are those of an app that do not end.
func (s *scene) pods(app string) []corev1.Pod {
	s.Helper()
	list, err := s.client.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		s.Fatal(err)
	}
	var live []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			live = append(live, pod)
		}
	}
	return live
}

func gone(err error) bool { return err == nil || apierrors.IsNotFound(err) }
