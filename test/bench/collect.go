package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// creators is how many clients make objects at once.
const creators = 32

// runCollect measures what the garbage collector and the end of a namespace cost.
func runCollect(ctx context.Context, args []string) {
	o := newOptions("collect")
	owners := o.Int("owners", 100, "ReplicaSets")
	objects := o.Int("objects", 10000, "pods of all ReplicaSets together, which are never bound; and ConfigMaps of the namespace")
	limit := o.Duration("limit", 10*time.Minute, "give up after")
	c := o.open(args)
	params := map[string]any{"owners": *owners, "objects": *objects, "replicas": len(c.configs)}
	emit("collect", "owned pods", c.target, params, []metrics{collectOwned(ctx, c, *owners, *objects, *limit)})
	emit("collect", "namespace", c.target, params, []metrics{collectNamespace(ctx, c, *objects, *limit)})
}

// collectOwned deletes ReplicaSets and waits until the garbage collector has deleted all their pods.
func collectOwned(ctx context.Context, c *cluster, owners, pods int, limit time.Duration) metrics {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ns := c.namespace(ctx, "bench-collect")
	defer removePods(c, ns)
	there := map[string]bool{}
	made, gone := make(chan struct{}), make(chan struct{})
	go watchPods(ctx, c, ns, func(ev podEvent) {
		was := len(there)
		there[ev.pod.Name] = true
		if ev.kind == "DELETED" {
			delete(there, ev.pod.Name)
		}
		if was < pods && len(there) == pods {
			close(made)
		}
		if was > 0 && len(there) == 0 {
			close(gone)
		}
	})
	sleep(ctx, 500*time.Millisecond)
	cs := c.clients(creators)
	eachOf(owners, creators, func(w, i int) {
		if _, err := cs[w].AppsV1().ReplicaSets(ns).Create(ctx, gated(i, pods/owners), metav1.CreateOptions{}); err != nil {
			fatalf("replicaset: %v", err)
		}
	})
	awaitAll(ctx, made, "pods")
	sleep(ctx, 3*time.Second) // statuses of the ReplicaSets
	return costOf(c, func() {
		policy := metav1.DeletePropagationBackground
		eachOf(owners, creators, func(w, i int) {
			err := cs[w].AppsV1().ReplicaSets(ns).Delete(ctx, gated(i, 0).Name, metav1.DeleteOptions{PropagationPolicy: &policy})
			if err != nil {
				fatalf("replicaset: %v", err)
			}
		})
		awaitAll(ctx, gone, "end of the pods")
	})
}

// gated is a ReplicaSet whose pods no scheduler touches.
func gated(i, replicas int) *appsv1.ReplicaSet {
	n, template := int32(replicas), podTemplate()
	labels := map[string]string{"app": fmt.Sprintf("rs-%05d", i)}
	template.Labels = labels
	template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "bench.example/never"}}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: labels["app"]},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
}

// collectNamespace deletes a namespace full of ConfigMaps and waits for its end.
func collectNamespace(ctx context.Context, c *cluster, objects int, limit time.Duration) metrics {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ns, cs := c.namespace(ctx, "bench-namespace"), c.clients(creators)
	eachOf(objects, creators, func(w, i int) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%06d", i)}, Data: map[string]string{"key": "value"}}
		if _, err := cs[w].CoreV1().ConfigMaps(ns).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			fatalf("configmap: %v", err)
		}
	})
	sleep(ctx, 3*time.Second)
	return costOf(c, func() {
		c.deleteNamespace(ns)
		for {
			_, err := cs[0].CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return
			}
			if ctx.Err() != nil {
				fatalf("the namespace has not ended")
			}
			sleep(ctx, 200*time.Millisecond)
		}
	})
}

// runStatuses measures what it costs until many Deployments say that their pods are available, which nodes of the cluster run.
func runStatuses(ctx context.Context, args []string) {
	o := newOptions("statuses")
	deployments := o.Int("deployments", 1000, "Deployments")
	pods := o.Int("pods", 10000, "pods of all Deployments together")
	limit := o.Duration("limit", 10*time.Minute, "give up after")
	c := o.open(args)
	params := map[string]any{"deployments": *deployments, "pods": *pods, "replicas": len(c.configs)}
	emit("statuses", "deployments", c.target, params, []metrics{statusesRun(ctx, c, *deployments, *pods, *limit)})
}

func statusesRun(ctx context.Context, c *cluster, deployments, pods int, limit time.Duration) metrics {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ns, cs := c.namespace(ctx, "bench-statuses"), c.clients(creators)
	available := make(chan struct{})
	each := int32(pods / deployments)
	go watchDeployments(ctx, c, ns, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == each }, deployments, available)
	sleep(ctx, 500*time.Millisecond)
	return costOf(c, func() {
		makeDeployments(ctx, cs, ns, deployments, pods/deployments)
		awaitAll(ctx, available, "Deployments to be available")
	})
}

// makeDeployments makes n Deployments of so many pods each.
func makeDeployments(ctx context.Context, cs []*kubernetes.Clientset, ns string, n, pods int) {
	eachOf(n, len(cs), func(w, i int) {
		rs := gated(i, pods)
		rs.Spec.Template.Spec.SchedulingGates = nil
		d := &appsv1.Deployment{ObjectMeta: rs.ObjectMeta, Spec: appsv1.DeploymentSpec{
			Replicas: rs.Spec.Replicas, Selector: rs.Spec.Selector, Template: rs.Spec.Template}}
		if _, err := cs[w].AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			fatalf("deployment: %v", err)
		}
	})
}

// watchDeployments closes done when so many Deployments have been as wanted.
func watchDeployments(ctx context.Context, c *cluster, ns string, asWanted func(*appsv1.Deployment) bool, wanted int, done chan<- struct{}) {
	w, err := c.client(0).AppsV1().Deployments(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		fatalf("watch: %v", err)
	}
	defer w.Stop()
	complete := map[string]bool{}
	for ev := range w.ResultChan() {
		d, ok := ev.Object.(*appsv1.Deployment)
		if ok && asWanted(d) {
			complete[d.Name] = true
		}
		if len(complete) == wanted {
			close(done)
			return
		}
	}
}

func awaitAll(ctx context.Context, done <-chan struct{}, what string) {
	select {
	case <-done:
	case <-ctx.Done():
		fatalf("waited too long for the %s", what)
	}
}

// costOf is what the servers used while f ran and in the second after it, in which loops end what they have begun.
func costOf(c *cluster, f func()) metrics {
	before := measure(c.pids)
	f()
	took := time.Since(before.at)
	time.Sleep(time.Second)
	m := metrics{}
	before.since(m, c.pids)
	m["seconds"] = took.Seconds()
	m["server_cpu_s"] = before.spent(c.pids)
	return m
}
