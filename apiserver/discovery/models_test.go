package discovery_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

func TestModels(t *testing.T) {
	models, err := discovery.Models()
	if err != nil {
		t.Fatal(err)
	}
	deployment := models["io.k8s.api.apps.v1.Deployment"]
	if deployment == nil || deployment.Extensions["x-kubernetes-group-version-kind"] == nil {
		t.Fatalf("the model of Deployment: %v", deployment)
	}
	containers := models["io.k8s.api.core.v1.PodSpec"].Properties["containers"]
	if got := containers.Extensions["x-kubernetes-list-type"]; got != "map" {
		t.Errorf("list type of containers: %v", got)
	}
}

func newManager(t *testing.T) *managedfields.FieldManager {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	converter, err := discovery.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	manager, err := managedfields.NewDefaultFieldManager(converter, runtime.UnsafeObjectConvertor(scheme), scheme, scheme,
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

func applied(t *testing.T, replicas, containers string) runtime.Object {
	t.Helper()
	var object map[string]any
	text := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: ` + replicas + `
  strategy: {rollingUpdate: {maxSurge: 25%}}
  template: {spec: {containers: [` + containers + `]}}`
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

func empty() runtime.Object {
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
}

// TestTypeConverter applies as two managers: conflict, takeover, and a list merged by its key.
func TestTypeConverter(t *testing.T) {
	manager := newManager(t)
	const web = `{name: web, image: a, resources: {limits: {cpu: 1, memory: 1Gi}}, ports: [{containerPort: 80}]}`
	live, err := manager.Apply(empty(), applied(t, "3", web), "alice", false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = manager.Apply(live, applied(t, "5", `{name: side, image: b}`), "bob", false)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.replicas`) {
		t.Fatalf("want a conflict over .spec.replicas, got %v", err)
	}
	live, err = manager.Apply(live, applied(t, "5", `{name: side, image: b}`), "bob", true)
	if err != nil {
		t.Fatal(err)
	}
	deployment := live.(*appsv1.Deployment)
	if got := deployment.Spec.Template.Spec.Containers; len(got) != 2 || got[0].Name != "web" || got[1].Name != "side" {
		t.Errorf("containers were not merged by name: %+v", got)
	}
	if cpu := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().String(); cpu != "1" || *deployment.Spec.Replicas != 5 {
		t.Errorf("cpu %s, replicas %d", cpu, *deployment.Spec.Replicas)
	}
	if _, err := manager.Apply(live, applied(t, "5", `{name: web, nonsense: 1}`), "carol", true); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("an unknown field: %v", err)
	}
}
