package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/controllers"
)

const (
	// patienceMax is for a machine that has other things to do.
	patienceMax  = 3 * time.Minute
	lookInterval = 50 * time.Millisecond
	// held keeps a deleted pod, as a kubelet does while its containers end.
	held = "example.com/held"
)

// TestScenarios plays all scenarios at the same time. Pods have no node, so the collector of pods is left out: it would end those
// that are deleted and held at its next look.
func TestScenarios(t *testing.T) {
	loops := slices.DeleteFunc(controllers.Names(), func(name string) bool { return name == "pod-garbage-collector" })
	client, access := started(t, setpoint.Config{Loops: append(loops, "scheduler")})
	for _, scenarios := range []map[string]func(*play){deployments, replicaSets, statefulSets, jobs, budgets, owners} {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(in(t, client, access, name))
			})
		}
	}
}

// started is a client of a cluster that serves until the test ends.
func started(t *testing.T, config setpoint.Config) (kubernetes.Interface, *rest.Config) {
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
	access, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	access.QPS = -1
	return kubernetes.NewForConfigOrDie(access), access
}

// in is a scenario in a namespace of its own.
func in(t *testing.T, client kubernetes.Interface, access *rest.Config, name string) *play {
	t.Helper()
	p := &play{T: t, client: client, access: access, namespace: name}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	p.must(err)
	return p
}

// play is one scenario, with its client and namespace.
type play struct {
	*testing.T
	client    kubernetes.Interface
	access    *rest.Config
	namespace string
}

func (p *play) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// refused wants an error of validation.
func (p *play) refused(what string, err error) {
	p.Helper()
	if !apierrors.IsInvalid(err) {
		p.Errorf("%s: %v, want a refusal", what, err)
	}
}

// see waits until look, which says what it saw, sees what is wanted.
func (p *play) see(what string, look func(context.Context) (saw string, ok bool)) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), patienceMax)
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
			p.Fatalf("not within %v: %s; last seen: %s", patienceMax, what, last)
		case <-tick.C:
		}
	}
}

// seen waits for an object that get gets and wanted wants.
func seen[T any](p *play, what string, get func(context.Context) (T, error), wanted func(T) bool) T {
	p.Helper()
	var object T
	p.see(what, func(ctx context.Context) (string, bool) {
		got, err := get(ctx)
		object = got
		return fmt.Sprintf("%+v %v", got, err), err == nil && wanted(got)
	})
	return object
}

func labels() map[string]string { return map[string]string{"app": "web"} }

func selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: labels()} }

// template is of pods that remain for a while when they are deleted.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "v1"}}},
	}
}

// pods are all of the namespace, whatever becomes of them.
func (p *play) pods(ctx context.Context) []corev1.Pod {
	p.Helper()
	list, err := p.client.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// seePods waits for so many pods, those that are being deleted too.
func (p *play) seePods(n int) []corev1.Pod {
	p.Helper()
	return seen(p, fmt.Sprintf("%d pods", n), func(ctx context.Context) ([]corev1.Pod, error) { return p.pods(ctx), nil },
		func(pods []corev1.Pod) bool { return len(pods) == n })
}

// ready plays the kubelet: pods that are not to go become ready.
func (p *play) ready(ctx context.Context) {
	for _, pod := range p.pods(ctx) {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			_, _ = p.client.CoreV1().Pods(p.namespace).UpdateStatus(ctx, &pod, metav1.UpdateOptions{}) // again at the next look
		}
	}
}

// letGo plays the kubelet: the containers of deleted pods have ended.
func (p *play) letGo(ctx context.Context) {
	for _, pod := range p.pods(ctx) {
		if pod.DeletionTimestamp != nil {
			_, _ = p.client.CoreV1().Pods(p.namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
}

// end ends a pod, well or not.
func (p *play) end(pod *corev1.Pod, code int32) {
	p.Helper()
	pods := p.client.CoreV1().Pods(p.namespace)
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := pods.Get(p.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}}}}
		_, err = pods.UpdateStatus(p.Context(), pod, metav1.UpdateOptions{})
		return err
	}))
}

// gone says whether the error is that an object is not there.
func gone(err error) bool { return apierrors.IsNotFound(err) }

// condition is the status and the reason of a condition of a Deployment.
func condition(d *appsv1.Deployment, of appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == of {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// has says whether all of the wanted are there.
func has(got, wanted map[string]string) bool {
	both := maps.Clone(got)
	maps.Copy(both, wanted)
	return maps.Equal(both, got)
}
