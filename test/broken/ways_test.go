package broken

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/setpointtest"
)

const (
	// deadURL is where nobody listens.
	deadURL = "https://127.0.0.1:1/"
	// conditionsBytes is about what a status may have.
	conditionsBytes = 1 << 20
)

var notACertificate = base64.StdEncoding.EncodeToString([]byte("not a certificate"))

var ways = []way{
	{name: "APIService of no Service", plant: apply(fmt.Sprintf(apiService, "")),
		named: namedIn("apiservice/v1.dead.example.com", "Available", "ServiceNotFound"), holdsNamespaces: "dead.example.com/v1"},
	{name: "APIService with a dead backend", plant: apply(deadService, fmt.Sprintf(apiService, "")),
		named: namedIn("apiservice/v1.dead.example.com", "Available", "FailedDiscoveryCheck"), holdsNamespaces: "dead.example.com/v1"},
	{name: "CRD with a dead conversion webhook", kind: widgets, plant: plantWidget(conversion("")),
		named: unconverted},
	{name: "CRD with a bad caBundle", plant: apply(fmt.Sprintf(crd, conversion(", caBundle: "+notACertificate))),
		named: namedIn("crd/widgets.example.com", "Established", "InvalidCABundle")},
	{name: "validating webhook that is dead, Fail", kind: widgets, plant: plantWebhook("Validating", "Fail"),
		named: refused(widgets, "dead.example.com")},
	{name: "validating webhook that is dead, Ignore", kind: widgets, plant: plantWebhook("Validating", "Ignore"),
		named: metric(`apiserver_admission_webhook_fail_open_count{name="dead.example.com",type="validating"}`)},
	{name: "mutating webhook that is dead, Ignore", kind: widgets, plant: plantWebhook("Mutating", "Ignore"),
		named: metric(`apiserver_admission_webhook_fail_open_count{name="dead.example.com",type="admit"}`)},
	{name: "mutating webhook that is dead, Fail", kind: widgets, plant: plantWebhook("Mutating", "Fail"),
		named: refused(widgets, "dead.example.com")},
	{name: "finalizer of nobody", kind: configMaps, plant: plantHeld(configMap("broken", held)), named: namedByNamespace},
	{name: "finalizer of nobody, custom kind", kind: widgets, plant: plantHeldWidget, named: namedByNamespace},
	{name: "owners in a circle", kind: configMaps, plant: plantCircle, named: circleGoes},
	{name: "owner of a kind that is gone", kind: configMaps, plant: plantOrphan(ownerRef("example.com/v1", "Gadget", "g", "gone")),
		logged: `poor broken}" err="owner Gadget g: no matches for kind`},
	{name: "owner that is gone", kind: configMaps, plant: plantOrphan(ownerRef("v1", "Node", "gone", "gone")),
		named: goes("configmap/broken")},
	{name: "megabyte of conditions, Deployment", kind: deployments, plant: plantConditions(deployments),
		named: finds("deployment/broken")},
	{name: "megabyte of conditions, custom kind", kind: widgets, plant: plantConditions(widgets), named: finds("widget/broken")},
	{name: "ConfigMap of the largest size", kind: configMaps, plant: plantLarge("ConfigMap"), named: tooLarge(configMaps)},
	{name: "Secret of the largest size", kind: secrets, plant: plantLarge("Secret"), named: tooLarge(secrets)},
}

// held is the metadata of what somebody has to let go who is not there.
const held = ", finalizers: [nobody.example.com/hold]"

func plantHeld(manifests ...string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		c.In(poor).Apply(manifests...)
		c.Delete("namespace/" + poor)
	}
}

func plantHeldWidget(t *testing.T, c *setpointtest.Cluster) {
	plantWidget(withoutConversion)(t, c)
	plantHeld(widget("broken", held))(t, c)
}

// namedByNamespace: the namespace cannot end, and says why.
func namedByNamespace(t *testing.T, c *setpointtest.Cluster) {
	namedIn("namespace/"+poor, "NamespaceFinalizersRemaining", "nobody.example.com/hold in 1 resource instances")(t, c)
}

// plantCircle makes two objects that own one another.
func plantCircle(_ *testing.T, c *setpointtest.Cluster) {
	c = c.In(poor)
	c.Apply(configMap("a", ""))
	c.Apply(configMap("b", ownerRef("v1", "ConfigMap", "a", string(c.Eventually("configmap/a").GetUID()))))
	c.Apply(configMap("a", ownerRef("v1", "ConfigMap", "b", string(c.Eventually("configmap/b").GetUID()))))
}

// circleGoes: nobody needs to name a circle, for it goes as soon as one of it is deleted.
func circleGoes(_ *testing.T, c *setpointtest.Cluster) {
	c = c.In(poor)
	c.Delete("configmap/a")
	c.Eventually("configmap/a", setpointtest.Gone)
	c.Eventually("configmap/b", setpointtest.Gone)
}

func plantOrphan(owner string) func(t *testing.T, c *setpointtest.Cluster) {
	return apply(configMap("broken", owner))
}

func goes(target string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(_ *testing.T, c *setpointtest.Cluster) { c.In(poor).Eventually(target, setpointtest.Gone) }
}

func finds(target string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(_ *testing.T, c *setpointtest.Cluster) { c.In(poor).Eventually(target) }
}

// plantConditions gives an object a status of about a megabyte.
func plantConditions(k kind) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		if k.resource == widgets.resource {
			c.Apply(fmt.Sprintf(crd, withoutConversion))
			c.Eventually("crd/widgets.example.com", setpointtest.True("Established"))
		}
		c.In(poor).Apply(fmt.Sprintf(k.manifest, "broken"))
		var conditions []any
		for i := range conditionsBytes / (1 << 10) {
			conditions = append(conditions, map[string]any{
				"type": fmt.Sprint("Odd", i), "status": "Unknown", "reason": "Odd", "message": strings.Repeat("x", 900),
			})
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
		if err != nil {
			t.Fatal(err)
		}
		objects := dynamicOf(t, c).Resource(k.resource).Namespace(poor)
		_, err = objects.Patch(t.Context(), "broken", types.MergePatchType, body, metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
}

// plantLarge makes an object with as much data as one may have.
func plantLarge(kind string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		if err := create(t, c, kind, "broken", corev1.MaxSecretSize); err != nil {
			t.Fatal(err)
		}
	}
}

func create(t *testing.T, c *setpointtest.Cluster, kind, name string, bytes int) (err error) {
	meta, data, client := metav1.ObjectMeta{Name: name}, map[string][]byte{"k": make([]byte, bytes)}, c.Kubernetes().CoreV1()
	if kind == "Secret" {
		_, err = client.Secrets(poor).Create(t.Context(), &corev1.Secret{ObjectMeta: meta, Data: data}, metav1.CreateOptions{})
	} else {
		_, err = client.ConfigMaps(poor).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, BinaryData: data}, metav1.CreateOptions{})
	}
	return err
}

// tooLarge: one byte more is refused by name.
func tooLarge(k kind) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		kind := "ConfigMap"
		if k.resource == secrets.resource {
			kind = "Secret"
		}
		assertNames(t, create(t, c, kind, "larger", corev1.MaxSecretSize+1), "Too long")
	}
}

// metric makes a widget, and looks for a counter.
func metric(series string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		c.In(poor).Apply(widget("passed", ""))
		text, err := c.Kubernetes().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(text), series) {
			t.Errorf("no %s: %v", series, err)
		}
	}
}

func apply(manifests ...string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(_ *testing.T, c *setpointtest.Cluster) { c.In(poor).Apply(manifests...) }
}

const (
	apiService = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.dead.example.com}
spec: {group: dead.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
  service: {namespace: poor, name: dead}%s}`
	// deadService leads to where nobody listens.
	deadService = `
apiVersion: v1
kind: Service
metadata: {name: dead}
spec: {type: ExternalName, externalName: localhost}`
	crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, subresources: {status: {}}, schema: *any}
  conversion: %s`
	withoutConversion = "{strategy: None}"
	webhook           = `
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: dead}
webhooks:
- name: dead.example.com
  clientConfig: {url: "` + deadURL + `"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: %s
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: poor}}
  rules: [{apiGroups: [example.com], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]`
)

// conversion is by a webhook at which nobody listens.
func conversion(more string) string {
	return fmt.Sprintf("{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q%s}}}", deadURL, more)
}

// plantWidget makes the kind and a widget of the poor namespace.
func plantWidget(conversion string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(_ *testing.T, c *setpointtest.Cluster) {
		c.Apply(fmt.Sprintf(crd, conversion))
		c.Eventually("crd/widgets.example.com", setpointtest.True("Established"))
		c.Advance(time.Second)
		c.In(poor).Apply(widget("broken", ""))
	}
}

func plantWebhook(kind, failurePolicy string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		plantWidget(withoutConversion)(t, c)
		c.Apply(fmt.Sprintf(webhook, kind, failurePolicy))
	}
}

// unconverted asks for the widget in the version in which it is not stored.
func unconverted(t *testing.T, c *setpointtest.Cluster) {
	v2 := widgets.resource
	v2.Version = "v2"
	_, err := dynamicOf(t, c).Resource(v2).Namespace(poor).Get(t.Context(), "broken", metav1.GetOptions{})
	assertNames(t, err, "conversion webhook for example.com/v2")
}

func dynamicOf(t *testing.T, c *setpointtest.Cluster) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func object(t *testing.T, k kind, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(fmt.Sprintf(k.manifest, name)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func assertNames(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v does not name %s", err, text)
	}
}
