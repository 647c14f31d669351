package broken

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// poor is the namespace of broken objects, beside that of healthy ones.
const poor, beside = "poor", "beside"

// others are what goes on beside a broken object. Each is played several times on a cluster, so round is part of its names.
var others = []struct {
	name string
	play func(t *testing.T, c *setpointtest.Cluster, w way, round int)
}{
	{"a namespace ends", namespaceEnds},
	{"the collector collects", collectorCollects},
	{"lists and watches answer", listsAnswer},
	{"a Deployment rolls out", deploymentRollsOut},
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: v1}]}}`

func namespaceEnds(t *testing.T, c *setpointtest.Cluster, w way, round int) {
	name := fmt.Sprint("leaving-", round)
	c.Apply(namespace(name))
	c.In(name).Apply(configMap("c", ""), fmt.Sprintf(deployment, "d"))
	c.In(name).Eventually("deployment/d", setpointtest.Available)
	c.Delete("namespace/" + name)
	if w.holdsNamespaces == "" {
		c.Eventually("namespace/"+name, setpointtest.Gone)
		return
	}
	c.Eventually("namespace/"+name, setpointtest.That(w.holdsNamespaces, func(ns *unstructured.Unstructured) bool {
		return says(ns, "NamespaceDeletionDiscoveryFailure", w.holdsNamespaces)
	}))
	c.In(name).Eventually("deployment/d", setpointtest.Gone)
}

func collectorCollects(t *testing.T, c *setpointtest.Cluster, _ way, round int) {
	owner, child := fmt.Sprint("owner-", round), fmt.Sprint("child-", round)
	c = c.In(beside)
	c.Apply(configMap(owner, ""))
	uid := string(c.Eventually("configmap/" + owner).GetUID())
	c.Apply(configMap(child, ownerRef("v1", "ConfigMap", owner, uid)))
	c.Delete("configmap/" + owner)
	c.Eventually("configmap/"+child, setpointtest.Gone)
}

// listsAnswer lists the broken object's kind in the healthy namespace, makes one there, and sees it come by watch.
func listsAnswer(t *testing.T, c *setpointtest.Cluster, w way, round int) {
	if w.kind.resource.Resource == "" {
		return
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	objects := client.Resource(w.kind.resource).Namespace(beside)
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Errorf("list: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	changes, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Errorf("watch: %v", err)
		return
	}
	defer changes.Stop()
	name := fmt.Sprint("healthy-", round)
	c.In(beside).Apply(fmt.Sprintf(w.kind.manifest, name))
	for event := range changes.ResultChan() {
		object, is := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !is {
			t.Errorf("watch: %v", event.Object)
			return
		}
		if object.GetName() == name {
			return
		}
	}
	t.Error("the watch ended")
}

func deploymentRollsOut(_ *testing.T, c *setpointtest.Cluster, _ way, round int) {
	c = c.In(beside)
	name := fmt.Sprint("shop-", round)
	c.Apply(fmt.Sprintf(deployment, name))
	c.Eventually("deployment/"+name, setpointtest.Available)
}

// kind is one that a broken object is of.
type kind struct {
	resource schema.GroupVersionResource
	// manifest is of a healthy object; %[1]s is its name.
	manifest string
}

var (
	configMaps  = kind{corev1.SchemeGroupVersion.WithResource("configmaps"), configMap("%[1]s", "")}
	secrets     = kind{corev1.SchemeGroupVersion.WithResource("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: %[1]s}}"}
	deployments = kind{appsv1.SchemeGroupVersion.WithResource("deployments"), deployment}
	widgets     = kind{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, widget("%[1]s", "")}
)

func namespace(name string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name)
}

// configMap is one with more of metadata, which begins with a comma.
func configMap(name, metadata string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s%s}}", name, metadata)
}

func widget(name, metadata string) string {
	return fmt.Sprintf("{apiVersion: example.com/v1, kind: Widget, metadata: {name: %s%s}}", name, metadata)
}

func ownerRef(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(", ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s}]", apiVersion, kind, name, uid)
}

// namedIn returns what looks for text in a condition of an object.
func namedIn(target, conditionType, text string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(_ *testing.T, c *setpointtest.Cluster) {
		c.In(poor).Eventually(target, setpointtest.That(conditionType+" that says "+text, func(o *unstructured.Unstructured) bool {
			return says(o, conditionType, text)
		}))
	}
}

// refused returns what sees that an object of the poor namespace cannot be made, because of what text names.
func refused(k kind, text string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		_, err := dynamicOf(t, c).Resource(k.resource).Namespace(poor).Create(context.Background(), object(t, k, "refused"), metav1.CreateOptions{})
		assertNames(t, err, text)
	}
}
