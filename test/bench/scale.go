package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// What a cluster of one size holds, for each of its nodes. At 5,000 nodes, 150,000 pods of 15,000 Deployments, 10,000 Services, and 1,000
// definitions: upstream's thresholds (kubernetes/community, sig-scalability/configs-and-limits/thresholds.md).
const (
	scalePods        = 30
	scaleDeployments = 3
	scaleServices    = 2
	scaleNodesPerCRD = 5
)

// The same work at every size: a cluster where cost follows what changes takes as long for it at any.
const (
	rolledDeployments = 20
	scaleListers      = 20
)

// scale is one cluster that is filled in steps, each of them measured.
type scale struct {
	*cluster
	ns     string
	cs     []*kubernetes.Clientset
	nodes  int
	window time.Duration
	params map[string]any
}

// runScale measures what each step of filling a cluster of simulated nodes costs, and then what the same changes cost in it.
func runScale(ctx context.Context, args []string) {
	o := newOptions("scale")
	nodes := o.Int("nodes", 100, "nodes of the cluster, which run pods")
	window := o.Duration("window", 30*time.Second, "how long an idle cluster is watched")
	limit := o.Duration("limit", 30*time.Minute, "give up after")
	c := o.open(args)
	ctx, stop := context.WithTimeout(ctx, *limit)
	defer stop()
	s := &scale{cluster: c, cs: c.clients(creators), nodes: *nodes, window: *window, params: map[string]any{"nodes": *nodes}}
	s.step("nodes ready", *nodes, func() { s.awaitNodes(ctx) })
	s.ns = c.namespace(ctx, "bench-scale")
	s.step("idle, nodes alone", *nodes, func() { sleep(ctx, s.window) })
	s.step("definitions", *nodes/scaleNodesPerCRD, func() { s.makeDefinitions(ctx, *nodes/scaleNodesPerCRD) })
	s.step("discovery", 1, func() { s.discover(ctx) })
	s.step("services", s.nodes*scaleServices, func() { s.makeServices(ctx) })
	s.step("pods", s.nodes*scalePods, func() { s.makePods(ctx) })
	s.step("idle, full", *nodes, func() { sleep(ctx, s.window) })
	s.step("rollout of 200 pods", 1, func() { s.rollOut(ctx) })
	s.step("lists of all pods by 20 clients", s.nodes*scalePods*scaleListers, func() { s.listAll(ctx) })
	s.step("end of 20 Deployments", 1, func() { s.end(ctx) })
}

// step writes what f cost, in all and for each of n things.
func (s *scale) step(name string, n int, f func()) {
	logf("%d nodes: %s", s.nodes, name)
	m := costOf(s.cluster, f)
	m["things"] = float64(n)
	m["server_cpu_us_per_thing"] = m["server_cpu_s"] * 1e6 / float64(max(n, 1))
	emit("scale", name, s.target, s.params, []metrics{m})
}

func (s *scale) awaitNodes(ctx context.Context) {
	for ctx.Err() == nil {
		list, err := s.cs[0].CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			fatalf("nodes: %v", err)
		}
		ready := 0
		for i := range list.Items {
			if status, _, _ := nodeReady(&list.Items[i]); status == corev1.ConditionTrue && len(list.Items[i].Spec.Taints) == 0 {
				ready++
			}
		}
		if ready >= s.nodes {
			return
		}
		sleep(ctx, time.Second)
	}
	fatalf("waited too long for the nodes")
}

// definition is a CustomResourceDefinition as JSON, with a schema of a few fields and a rule.
const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"things%[1]d.scale.example"},
"spec":{"group":"scale.example","scope":"Namespaced",
"names":{"plural":"things%[1]d","singular":"thing%[1]d","kind":"Thing%[1]d","listKind":"Thing%[1]dList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.least <= self.most","message":"least is more than most"}],
"properties":{"least":{"type":"integer","default":0},"most":{"type":"integer","default":9},"names":{"type":"array","maxItems":16,"items":{"type":"string","maxLength":63}}}},
"status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}}}]}}`

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func (s *scale) makeDefinitions(ctx context.Context, n int) {
	eachOf(n, creators, func(w, i int) {
		body := fmt.Appendf(nil, definition, i)
		if err := s.cs[w].RESTClient().Post().AbsPath(definitionsPath).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error(); err != nil {
			fatalf("definition: %v", err)
		}
	})
	eachOf(n, creators, func(w, i int) { s.awaitServed(ctx, s.cs[w], i) })
}

// awaitServed waits until objects of a definition can be listed.
func (s *scale) awaitServed(ctx context.Context, cs *kubernetes.Clientset, i int) {
	path := fmt.Sprintf("/apis/scale.example/v1/namespaces/%s/things%d", s.ns, i)
	for cs.RESTClient().Get().AbsPath(path).Do(ctx).Error() != nil {
		if ctx.Err() != nil {
			fatalf("definition %d is not served", i)
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// discover asks what a new client asks first: all groups and resources at once, and the index of OpenAPI.
func (s *scale) discover(ctx context.Context) {
	aggregated := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for path, accept := range map[string]string{"/apis": aggregated, "/openapi/v3": "application/json"} {
		if err := s.cs[0].RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Error(); err != nil {
			fatalf("%s: %v", path, err)
		}
	}
}

// makeServices makes Services that select Deployments, some of them the same one.
func (s *scale) makeServices(ctx context.Context) {
	eachOf(s.nodes*scaleServices, creators, func(w, i int) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%05d", i)},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": gated(i%(s.nodes*scaleDeployments), 0).Name}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if _, err := s.cs[w].CoreV1().Services(s.ns).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			fatalf("service: %v", err)
		}
	})
}

func (s *scale) makePods(ctx context.Context) {
	deployments, each := s.nodes*scaleDeployments, int32(scalePods/scaleDeployments)
	done := make(chan struct{})
	go watchDeployments(ctx, s.cluster, s.ns, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == each }, deployments, done)
	sleep(ctx, 500*time.Millisecond)
	makeDeployments(ctx, s.cs, s.ns, deployments, int(each))
	awaitAll(ctx, done, "Deployments to be available")
}

// rollOut changes the template of a few Deployments and waits until the new pods are there and the old ones gone.
func (s *scale) rollOut(ctx context.Context) {
	each, done := int32(scalePods/scaleDeployments), make(chan struct{})
	go watchDeployments(ctx, s.cluster, s.ns, func(d *appsv1.Deployment) bool {
		return d.Generation == 2 && d.Status.ObservedGeneration == 2 && d.Status.Replicas == each && d.Status.UpdatedReplicas == each &&
			d.Status.AvailableReplicas == each
	}, rolledDeployments, done)
	sleep(ctx, 500*time.Millisecond)
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	eachOf(rolledDeployments, creators, func(w, i int) {
		_, err := s.cs[w].AppsV1().Deployments(s.ns).Patch(ctx, gated(i, 0).Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			fatalf("deployment: %v", err)
		}
	})
	awaitAll(ctx, done, "Deployments to be rolled out")
}

// listAll has clients list all pods at once, as agents do that lost their servers.
func (s *scale) listAll(ctx context.Context) {
	eachOf(scaleListers, scaleListers, func(_, i int) {
		hc, base := s.rawHTTP(i)
		if _, _, err := fetch(ctx, hc, base+"/api/v1/pods?resourceVersion=0", "application/vnd.kubernetes.protobuf"); err != nil {
			fatalf("list: %v", err)
		}
	})
}

// end deletes a few Deployments and waits until their pods are gone.
func (s *scale) end(ctx context.Context) {
	policy := metav1.DeletePropagationForeground
	eachOf(rolledDeployments, creators, func(w, i int) {
		err := s.cs[w].AppsV1().Deployments(s.ns).Delete(ctx, gated(i, 0).Name, metav1.DeleteOptions{PropagationPolicy: &policy})
		if err != nil {
			fatalf("deployment: %v", err)
		}
	})
	eachOf(rolledDeployments, creators, func(w, i int) {
		for ctx.Err() == nil {
			if _, err := s.cs[w].AppsV1().Deployments(s.ns).Get(ctx, gated(i, 0).Name, metav1.GetOptions{}); err != nil {
				return
			}
			sleep(ctx, 100*time.Millisecond)
		}
	})
}
