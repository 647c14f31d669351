package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	rolloutHost = "rollout.bench.test"
	rolloutName = "shop"
	demoPort    = 8080
	// askersMax is how many requests are under way at once; one that finds no room waits, and its wait counts.
	askersMax = 256
)

// runRollout asks an Ingress at a steady rate while the Deployment behind it goes from version to version.
func runRollout(ctx context.Context, args []string) {
	o := newOptions("rollout")
	address := o.String("address", "127.0.0.1:8080", "where a node serves Ingresses by plain HTTP")
	image := o.String("image", "setpoint.local/demo:v1", "image of the pods; it should be on the node")
	rate := o.Int("rate", 1000, "requests per second")
	versions := o.Int("versions", 20, "versions to roll out, one after another")
	replicas := o.Int("replicas", 4, "pods")
	limit := o.Duration("limit", time.Minute, "give up on a version after")
	c := o.open(args)
	ns := c.namespace(ctx, "bench-rollout")
	defer c.deleteNamespace(ns)
	shop := &shop{cluster: c, namespace: ns, limit: *limit}
	if err := shop.open(ctx, *image, int32(*replicas)); err != nil {
		fatalf("rollout: %v", err)
	}
	a := newAsker(*address)
	if err := a.awaitAnswer(ctx, *limit); err != nil {
		fatalf("rollout: %s: %v", *address, err)
	}
	asking, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { a.run(asking, *rate) })
	began, took := time.Now(), &latencies{}
	for v := range *versions {
		before := time.Now()
		if err := shop.roll(ctx, fmt.Sprint("v", v+2)); err != nil {
			fatalf("version %d: %v", v+2, err)
		}
		took.add(time.Since(before))
	}
	stop()
	done.Wait()
	m := metrics{"versions": float64(*versions), "requests": float64(a.asked.Load()), "failed": float64(a.failed.Load())}
	m["requests_per_s"] = m["requests"] / time.Since(began).Seconds()
	took.into(m, "version_")
	a.answers.into(m, "answer_")
	emit("rollout", "ingress", c.target, map[string]any{"rate": *rate, "replicas": *replicas, "first_failure": a.firstFailure()}, []metrics{m})
}

// shop is a Deployment behind a Service behind an Ingress.
type shop struct {
	cluster   *cluster
	namespace string
	limit     time.Duration
}

func (s *shop) open(ctx context.Context, image string, replicas int32) error {
	clients, labels, any := s.cluster.client(0), map[string]string{"app": rolloutName}, networkingv1.PathTypePrefix
	pod := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(demoPort)},
		}},
	}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: rolloutName}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
	}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: rolloutName}, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(demoPort)}},
	}}
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: rolloutName, Port: networkingv1.ServiceBackendPort{Number: 80},
	}}
	paths := &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &any, Backend: backend}}}
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: rolloutName}, Spec: networkingv1.IngressSpec{
		Rules: []networkingv1.IngressRule{{Host: rolloutHost, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: paths}}},
	}}
	if _, err := clients.AppsV1().Deployments(s.namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := clients.CoreV1().Services(s.namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := clients.NetworkingV1().Ingresses(s.namespace).Create(ctx, ingress, metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.awaitRolledOut(ctx)
}

// roll makes another version, and waits until it alone is there.
func (s *shop) roll(ctx context.Context, version string) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"c","args":["demo","--version",%q]}]}}}}`, version)
	_, err := s.cluster.client(0).AppsV1().Deployments(s.namespace).
		Patch(ctx, rolloutName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return s.awaitRolledOut(ctx)
}

func (s *shop) awaitRolledOut(ctx context.Context) error {
	for deadline := time.Now().Add(s.limit); time.Now().Before(deadline); sleep(ctx, 20*time.Millisecond) {
		d, err := s.cluster.client(0).AppsV1().Deployments(s.namespace).Get(ctx, rolloutName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		wanted, now := *d.Spec.Replicas, d.Status
		if now.ObservedGeneration == d.Generation && now.UpdatedReplicas == wanted && now.AvailableReplicas == wanted && now.Replicas == wanted {
			return nil
		}
	}
	return fmt.Errorf("not rolled out after %s", s.limit)
}

// asker asks the Ingress, by connections that it keeps, as a browser or a proxy in front does.
type asker struct {
	url           string
	client        *http.Client
	asked, failed atomic.Int64
	first         atomic.Pointer[string]
	answers       latencies
}

func newAsker(address string) *asker {
	return &asker{url: "http://" + address + "/", client: &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: askersMax, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
	}}
}

func (a *asker) firstFailure() string {
	if text := a.first.Load(); text != nil {
		return *text
	}
	return ""
}

// awaitAnswer waits until the node serves the Ingress.
func (a *asker) awaitAnswer(ctx context.Context, limit time.Duration) (err error) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); sleep(ctx, 50*time.Millisecond) {
		if err = a.ask(); err == nil {
			return nil
		}
	}
	return err
}

func (a *asker) ask() error {
	request, err := http.NewRequest(http.MethodGet, a.url, nil)
	if err != nil {
		return err
	}
	request.Host = rolloutHost
	answer, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// run asks until ctx ends, and returns once all answers are there.
func (a *asker) run(ctx context.Context, rate int) {
	var under sync.WaitGroup
	defer under.Wait()
	room := make(chan struct{}, askersMax)
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		sleep(ctx, time.Until(due))
		room <- struct{}{}
		under.Go(func() {
			defer func() { <-room }()
			a.count(a.ask(), due)
		})
	}
}

// count measures from when the request was due: what waits for room waits for an answer.
func (a *asker) count(err error, due time.Time) {
	a.asked.Add(1)
	a.answers.add(time.Since(due))
	if err != nil {
		text := err.Error()
		a.failed.Add(1)
		a.first.CompareAndSwap(nil, &text)
	}
}
