package controllers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	aggregatorfake "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	aggregatorinformers "k8s.io/kube-aggregator/pkg/client/informers/externalversions"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func kinds() []reconciletest.Kind {
	return []reconciletest.Kind{
		{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespaced: true},
		{Resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), Kind: "ReplicaSet", Namespaced: true},
		{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespaced: true},
	}
}

func config(t *testing.T, w *reconciletest.World) (reconcile.Env, Config) {
	t.Helper()
	monitors := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for _, k := range kinds() {
		informer, err := w.Informers.ForResource(k.Resource)
		if err != nil {
			t.Fatal(err)
		}
		monitors[k.Resource] = informer.Informer()
	}
	extensions, aggregated := fake.NewClientset(), aggregatorfake.NewClientset()
	definitions := crdinformers.NewSharedInformerFactory(extensions, 0)
	services := aggregatorinformers.NewSharedInformerFactory(aggregated, 0)
	for _, read := range Reads() {
		switch resource := read.Declaration().Resource; resource.Group {
		case "apiextensions.k8s.io":
			w.Serve(resource, definitions.Apiextensions().V1().CustomResourceDefinitions().Informer())
		case "apiregistration.k8s.io":
			w.Serve(resource, services.Apiregistration().V1().APIServices().Informer())
		}
	}
	definitions.StartWithContext(w.Context())
	services.Start(w.Context().Done())
	t.Cleanup(func() { definitions.Shutdown(); services.Shutdown() })
	env := w.Env()
	env.Extensions, env.Aggregator, env.Metadata, env.Discovery = extensions, aggregated, w.Metadata(kinds()), w.Discovery(kinds())
	return env, Config{
		Monitors: func() map[schema.GroupVersionResource]cache.SharedIndexInformer { return monitors },
		RootCA:   []byte("PEM"),
	}
}

// The whole life of a Deployment under all controllers, through a change of
// leaders: pods come, end with their owner, and a new term finds nothing to do.
func TestEverythingTogetherThroughTwoTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		env, cfg := config(t, w)
		w.Warm(all(cfg)...)
		w.Start()
		term := func(body func()) {
			ctx, cancel := context.WithCancel(w.Context())
			done := make(chan error)
			go func() { done <- Run(ctx, env, cfg) }()
			w.Settle()
			body()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		labels := map[string]string{"app": "web"}
		term(func() {
			reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
			reconciletest.Add(w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}}})
			w.Settle()
			if n := len(w.Pods("ns")); n != 3 {
				t.Errorf("%d pods, want 3", n)
			}
		})
		w.Writes()
		term(func() { time.Sleep(time.Minute) })
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("a new term wrote to an unchanged world: %v", writes)
		}
		term(func() {
			if err := w.Client.AppsV1().Deployments("ns").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.Settle()
			if n := len(w.Pods("ns")); n != 0 {
				t.Errorf("%d pods outlive their Deployment", n)
			}
		})
	})
}

func TestRunRefusesAnIncompleteConfig(t *testing.T) {
	if err := Run(t.Context(), reconcile.Env{}, Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("got %v", err)
	}
}
