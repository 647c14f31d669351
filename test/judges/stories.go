package judges

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/setpointtest"
)

const (
	nodes = 2
	// patienceMax is for a machine that has other things to do.
	patienceMax  = 3 * time.Minute
	lookInterval = 50 * time.Millisecond
	// pool has addresses for load balancers and Gateways.
	pool = "192.0.2.64/28"
)

// gateways are served once their definition is there.
var gateways = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}

// Play plays the kinds that no scene has, all at the same time, on a cluster of its own, and returns every version of every object.
func Play(t *testing.T) *Record {
	t.Helper()
	access := startCluster(t)
	first := newStory(t, access, "default")
	first.until("the definition", "Gateways", func() error {
		_, err := first.client.Resource(gateways).List(t.Context(), metav1.ListOptions{})
		return err
	})
	record := Follow(t, access, append([]schema.GroupVersionResource{gateways}, Resources...)...)
	t.Run("all", func(t *testing.T) {
		for name, play := range map[string]func(*story){
			"claim": claimStory, "balancer": balancerStory, "ingress": ingressStory, "gateway": gatewayStory,
			"definition": definitionStory, "apiservice": apiServiceStory, "namespace": namespaceStory,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newStory(t, access, name)
				s.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
				play(s)
			})
		}
	})
	return record
}

// startCluster starts one that ends with the test.
func startCluster(t *testing.T) *rest.Config {
	t.Helper()
	cluster, err := setpoint.Start(t.Context(), setpoint.Config{SimulatedNodes: nodes, LoadBalancerAddresses: pool, GatewayAPI: true})
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
	return access
}

// story is one, with its client and namespace.
type story struct {
	*testing.T
	client    dynamic.Interface
	namespace string
}

func newStory(t *testing.T, access *rest.Config, namespace string) *story {
	t.Helper()
	client, err := dynamic.NewForConfig(access)
	if err != nil {
		t.Fatal(err)
	}
	return &story{t, client, namespace}
}

// of are the objects of a resource, such as "deployments.v1.apps"; without a namespace for those that a cluster has once.
func (s *story) of(resource string) dynamic.ResourceInterface {
	gvr, gr := schema.ParseResourceArg(resource)
	if gvr == nil {
		gvr = &schema.GroupVersionResource{Version: "v1", Resource: gr.Resource}
	}
	switch gvr.Resource {
	case "namespaces", "nodes", "persistentvolumes", "customresourcedefinitions", "apiservices", "storageclasses":
		return s.client.Resource(*gvr)
	}
	return s.client.Resource(*gvr).Namespace(s.namespace)
}

// apply creates objects.
func (s *story) apply(text string) {
	s.Helper()
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o := read(s.T, doc)
		gv := schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind())
		plural := strings.ToLower(o.GetKind())
		if strings.HasSuffix(plural, "ss") {
			plural += "e"
		}
		plural += "s"
		if _, err := s.of(plural+"."+gv.Version+"."+gv.Group).Create(s.Context(), o, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *story) patch(resource, name, patch string, sub ...string) {
	s.Helper()
	body, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.of(resource).Patch(s.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, sub...); err != nil {
		s.Fatal(err)
	}
}

func (s *story) delete(resource, name string) {
	s.Helper()
	if err := s.of(resource).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// until waits until a look has no error.
func (s *story) until(what, name string, look func() error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patienceMax)
	defer cancel()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("not within %v: %s of %s: %v", patienceMax, what, name, err)
		case <-tick.C:
		}
	}
}

// see waits until an object is as it should be.
func (s *story) see(resource, name, what string, wanted func(o *unstructured.Unstructured) bool) *unstructured.Unstructured {
	s.Helper()
	var seen *unstructured.Unstructured
	s.until(what, name, func() error {
		o, err := s.of(resource).Get(s.Context(), name, metav1.GetOptions{})
		if seen = o; err == nil && !wanted(o) {
			err = fmt.Errorf("%s", statusText(o))
		}
		return err
	})
	return seen
}

func (s *story) seeGone(resource, name string) {
	s.Helper()
	s.until("its end", name, func() error {
		_, err := s.of(resource).Get(s.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// claimStory: a claim is bound to a volume, and grows with it as a driver's resizer does it.
func claimStory(s *story) {
	s.apply(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: grows}, provisioner: example.com/none, allowVolumeExpansion: true}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {storageClassName: grows, volumeName: v,
  accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {storageClassName: grows, capacity: {storage: 1Gi},
  accessModes: [ReadWriteOnce],
  persistentVolumeReclaimPolicy: Retain, csi: {driver: example.com, volumeHandle: h}}}`)
	bound := func(o *unstructured.Unstructured) bool { return text(o, "status", "phase") == "Bound" }
	s.see("persistentvolumeclaims", "c", "bound", bound)
	s.patch("persistentvolumeclaims", "c", "{spec: {resources: {requests: {storage: 2Gi}}}}")
	s.patch("persistentvolumes", "v", "{spec: {capacity: {storage: 2Gi}}}")
	s.patch("persistentvolumeclaims", "c", "{status: {capacity: {storage: 2Gi}}}", "status")
	s.delete("persistentvolumeclaims", "c")
	s.seeGone("persistentvolumeclaims", "c")
	s.see("persistentvolumes", "v", "released", func(o *unstructured.Unstructured) bool { return text(o, "status", "phase") == "Released" })
}

const balancers = `{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {type: LoadBalancer, loadBalancerIP: '%s', selector: {app: a}, ports: [{port: 80}]}}`

// balancerStory: a Service gets an address, asks for another one, and gives it to the next.
func balancerStory(s *story) {
	has := func(address string) func(o *unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return fmt.Sprint(addresses(o)) == address }
	}
	s.apply(fmt.Sprintf(balancers, "a", "192.0.2.66"))
	s.see("services", "a", "its address", has("[192.0.2.66]"))
	s.apply(fmt.Sprintf(balancers, "b", "192.0.2.66"))
	s.patch("services", "a", "{spec: {loadBalancerIP: 192.0.2.67}}")
	s.see("services", "a", "its new address", has("[192.0.2.67]"))
	s.see("services", "b", "the address of the other", has("[192.0.2.66]"))
	s.patch("services", "a", "{spec: {type: ClusterIP, loadBalancerIP: null}}")
	s.see("services", "a", "no address", has("[]"))
	s.delete("services", "b")
}

// ingressStory: a node serves Ingresses, then none does.
func ingressStory(s *story) {
	all, err := s.of("nodes").List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	node := all.Items[0].GetName()
	s.apply(`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, ports: [{port: 80}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {ingressClassName: setpoint,
  defaultBackend: {service: {name: a, port: {number: 80}}}}}`)
	s.patch("nodes", node, `{metadata: {labels: {setpoint.io/ingress: "true"}}}`)
	s.see("ingresses.v1.networking.k8s.io", "i", "an address", func(o *unstructured.Unstructured) bool { return len(addresses(o)) > 0 })
	s.patch("ingresses.v1.networking.k8s.io", "i", `{spec: {ingressClassName: another}}`)
	s.delete("ingresses.v1.networking.k8s.io", "i")
}

// gatewayStory: a Gateway is programmed, and again with another listener.
func gatewayStory(s *story) {
	programmed := func(o *unstructured.Unstructured) bool { return awaited(o) == Done }
	resource := "gateways.v1.gateway.networking.k8s.io"
	s.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: g}, spec: {gatewayClassName: setpoint, listeners: [{name: http, port: 80, protocol: HTTP}]}}`)
	s.see(resource, "g", "programmed", programmed)
	s.patch(resource, "g", `{spec: {listeners: [{name: http, port: 80, protocol: HTTP}, {name: more, port: 8080, protocol: HTTP}]}}`)
	s.see(resource, "g", "programmed again", programmed)
	s.patch(resource, "g", `{spec: {listeners: [{name: other, port: 8081, protocol: HTTP}]}}`)
	s.see(resource, "g", "programmed once more", programmed)
	s.delete(resource, "g")
}

const definitions = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.story.example.com}, spec: {group: story.example.com, scope: Namespaced,
  names: {kind: %[2]s, plural: %[1]s, singular: %[3]s},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`

// definitionStory: a definition is served when it is established; another one of the same kind waits until the first is gone.
func definitionStory(s *story) {
	resource := "customresourcedefinitions.v1.apiextensions.k8s.io"
	established := func(o *unstructured.Unstructured) bool { return isTrue(o, "Established") }
	s.apply(fmt.Sprintf(definitions, "shops", "Shop", "shop"))
	s.see(resource, "shops.story.example.com", "established", established)
	if _, err := s.of("shops.v1.story.example.com").List(s.Context(), metav1.ListOptions{}); err != nil {
		s.Errorf("it is established and not served: %v", err)
	}
	s.apply(`{apiVersion: story.example.com/v1, kind: Shop, metadata: {name: a, finalizers: [example.com/f]}}`)
	s.apply(fmt.Sprintf(definitions, "stores", "Shop", "store"))
	s.see(resource, "stores.story.example.com", "refused", func(o *unstructured.Unstructured) bool { return condition(o, "NamesAccepted") == "False" })
	s.delete(resource, "shops.story.example.com")
	s.see(resource, "shops.story.example.com", "terminating", func(o *unstructured.Unstructured) bool { return isTrue(o, "Terminating") })
	s.patch("shops.v1.story.example.com", "a", "{metadata: {finalizers: null}}")
	s.seeGone(resource, "shops.story.example.com")
	s.see(resource, "stores.story.example.com", "established", established)
	s.delete(resource, "stores.story.example.com")
}

// apiServiceStory: one that nobody serves says so.
func apiServiceStory(s *story) {
	resource := "apiservices.v1.apiregistration.k8s.io"
	s.apply(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.absent.example.com}, spec: {group: absent.example.com, version: v1,
  groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: apiservice, name: absent}}}`)
	lacks := func(why string) func(o *unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return condition(o, "Available") == "False" && reason(o, "Available") == why
		}
	}
	s.see(resource, "v1.absent.example.com", "without a Service", lacks("ServiceNotFound"))
	s.apply(`{apiVersion: v1, kind: Service, metadata: {name: absent}, spec: {selector: {app: a}, ports: [{port: 443}]}}`)
	s.see(resource, "v1.absent.example.com", "without endpoints", func(o *unstructured.Unstructured) bool { return reason(o, "Available") != "ServiceNotFound" })
	s.delete("services", "absent")
	s.see(resource, "v1.absent.example.com", "without a Service again", lacks("ServiceNotFound"))
	s.delete(resource, "v1.absent.example.com")
}

// namespaceStory: a Namespace is gone after what is in it, which a finalizer holds.
func namespaceStory(s *story) {
	s.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/f]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, selector: {matchLabels: {app: d}},
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: v1}]}}}}`)
	s.see("deployments.v1.apps", "d", "complete", func(o *unstructured.Unstructured) bool { return Kstatus(o) == Done })
	s.delete("namespaces", s.namespace)
	s.see("namespaces", s.namespace, "that something is left", func(o *unstructured.Unstructured) bool { return isTrue(o, "NamespaceFinalizersRemaining") })
	s.patch("configmaps", "held", "{metadata: {finalizers: null}}")
	s.seeGone("namespaces", s.namespace)
}

// PlayVirtual plays, in a bubble, what takes minutes: CronJobs, budgets beside rollouts, ReplicaSets, a rollout that gets stuck.
func PlayVirtual(t *testing.T) *Record {
	t.Helper()
	c := setpointtest.Start(t, setpointtest.Config{Nodes: nodes})
	c.Advance(time.Minute) // until the nodes are ready
	record := Follow(t, c.RESTConfig(), Resources...)
	s := newStory(t, c.RESTConfig(), c.Namespace())
	s.apply(virtual)
	c.Advance(5 * time.Minute)
	for _, patch := range patches {
		s.patch(patch.resource, patch.name, patch.patch)
		c.Advance(90 * time.Second)
	}
	for _, o := range [][2]string{{"cronjobs.v1.batch", "c"}, {"replicasets.v1.apps", "r"}, {"deployments.v1.apps", "d"}} {
		s.delete(o[0], o[1])
	}
	c.Advance(time.Minute)
	return record
}

// patches are what changes in virtual time, one after the other.
var patches = []struct{ resource, name, patch string }{
	{"poddisruptionbudgets.v1.policy", "b", "{spec: {minAvailable: 2}}"},
	{"deployments.v1.apps", "d", "{spec: {replicas: 5, template: {metadata: {annotations: {v: '2'}}}}}"},
	{"poddisruptionbudgets.v1.policy", "b", "{spec: {minAvailable: 4}}"},
	{"replicasets.v1.apps", "r", "{spec: {replicas: 4}}"},
	{"cronjobs.v1.batch", "c", "{spec: {suspend: true}}"},
	{"deployments.v1.apps", "d", "{spec: {template: {spec: {nodeSelector: {none: such}}}}}"},
	{"replicasets.v1.apps", "r", "{spec: {replicas: 1}}"},
	{"cronjobs.v1.batch", "c", "{spec: {suspend: false}}"},
	{"deployments.v1.apps", "d", "{spec: {template: {spec: {nodeSelector: null}}}}"},
	{"deployments.v1.apps", "d", "{spec: {replicas: 1}}"},
}

const virtual = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: '* * * * *', successfulJobsHistoryLimit: 1,
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: v1, command: [sleep, '20']}]}}}}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1, selector: {matchLabels: {app: d}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 3, progressDeadlineSeconds: 60,
  selector: {matchLabels: {app: d}},
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: v1}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 2, selector: {matchLabels: {app: r}},
  template: {metadata: {labels: {app: r}}, spec: {containers: [{name: c, image: v1}]}}}}`

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return &object
}
