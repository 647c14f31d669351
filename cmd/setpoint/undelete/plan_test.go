package undelete

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/server/past"
)

// was is an object as it was; its uid is that of its name.
func was(t *testing.T, resource, text string) *part {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	gv, err := schema.ParseGroupVersion(object.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	object.SetUID(types.UID("uid-of-" + object.GetName()))
	if resource == "endpoints" { // of a Service of the same name
		object.SetUID("endpoints-" + object.GetUID())
	}
	object.SetNamespace("shop")
	object.SetResourceVersion("5")
	return &part{resource: gv.WithResource(resource), object: object, uid: object.GetUID()}
}

func owned(by, kind string, controller bool) string {
	return fmt.Sprintf("ownerReferences: [{apiVersion: v1, kind: %s, name: %s, uid: uid-of-%s, controller: %v}]", kind, by, by, controller)
}

// told is a plan in words.
func told(p *plan) (lines []string) {
	for i, wave := range p.waves {
		for _, one := range wave {
			lines = append(lines, strings.Join(append([]string{fmt.Sprintf("%d %s", i, one)}, one.notes...), ", "))
		}
	}
	for _, o := range p.leftOut {
		lines = append(lines, fmt.Sprintf("- %s: %s", o.part, o.why))
	}
	return lines
}

// TestPlan: owners before owned, what is needed before those that need it, limits last, and what is left out with its reason.
func TestPlan(t *testing.T) {
	metadata := func(name string, more ...string) string {
		return "{name: " + name + strings.Join(append([]string{""}, more...), ", ") + "}"
	}
	parts := []*part{
		was(t, "resourcequotas", "{apiVersion: v1, kind: ResourceQuota, metadata: "+metadata("all")+"}"),
		was(t, "pods", "{apiVersion: v1, kind: Pod, metadata: "+metadata("web-1-x", owned("web-1", "ReplicaSet", true))+"}"),
		was(t, "replicasets", "{apiVersion: apps/v1, kind: ReplicaSet, metadata: "+metadata("web-1", owned("web", "Deployment", true))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("of-owned", owned("of-web", "ConfigMap", false))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("of-web", owned("web", "Deployment", false))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("of-pod", owned("web-1-x", "Pod", false))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("of-gone", owned("gone", "Thing", true))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("of-node", owned("node", "Node", false))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("of-class", owned("class", "Class", true))+"}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata("kube-root-ca.crt")+"}"),
		was(t, "deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: "+metadata("web")+"}"),
		was(t, "serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: "+metadata("default")+"}"),
		was(t, "serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: "+metadata("clerk")+"}"),
		was(t, "services", "{apiVersion: v1, kind: Service, metadata: "+metadata("web-service")+", spec: {selector: {a: b}, clusterIP: 10.0.0.1}}"),
		was(t, "endpoints", "{apiVersion: v1, kind: Endpoints, metadata: "+metadata("web-service")+"}"),
		was(t, "services", "{apiVersion: v1, kind: Service, metadata: "+metadata("by-hand")+", spec: {clusterIP: None}}"),
		was(t, "endpoints", "{apiVersion: v1, kind: Endpoints, metadata: "+metadata("by-hand")+"}"),
		was(t, "jobs", "{apiVersion: batch/v1, kind: Job, metadata: "+metadata("done")+", status: {conditions: [{type: Complete, status: 'True'}]}}"),
		was(t, "pods", "{apiVersion: v1, kind: Pod, metadata: "+metadata("of-done", owned("done", "Job", true))+"}"),
		was(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: "+metadata("data", owned("web", "StatefulSet", true))+
			", spec: {volumeName: kept}}"),
		was(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: "+metadata("lost")+", spec: {volumeName: lost}}"),
		was(t, "pods", "{apiVersion: v1, kind: Pod, metadata: "+metadata("ending", "deletionTimestamp: '2026-01-01T00:00:00Z'")+"}"),
		was(t, "events", "{apiVersion: v1, kind: Event, metadata: "+metadata("e")+"}"),
	}
	p := newPlan(parts, world{
		volumes: map[string]bool{"kept": true}, owners: map[types.UID]types.UID{"uid-of-node": "uid-of-node", "uid-of-class": "another", "uid-of-gone": ""},
	})
	want := []string{
		"0 ServiceAccount/clerk",
		"1 ConfigMap/of-gone, without its owner Thing/gone", "1 ConfigMap/of-node", "1 ConfigMap/of-pod, without its owner Pod/web-1-x",
		"1 PersistentVolumeClaim/lost, with a new volume: lost is no more", "1 Service/by-hand", "1 Service/web-service, with a new cluster IP",
		"2 Endpoints/by-hand", "3 Deployment/web",
		"4 ConfigMap/of-web", "4 PersistentVolumeClaim/data, with its volume kept", "5 ConfigMap/of-owned", "6 ResourceQuota/all",
		"- Pod/web-1-x: ReplicaSet/web-1 makes it again", "- ReplicaSet/web-1: Deployment/web makes it again",
		"- ConfigMap/of-class: Class/class makes it again", "- ConfigMap/kube-root-ca.crt: each namespace gets its own",
		"- ServiceAccount/default: each namespace gets its own", "- Endpoints/web-service: Service/web-service makes it again",
		"- Job/done: it had ended, and would run again", "- Pod/of-done: it belongs to Job/done, which is left out",
		"- Pod/ending: it was being deleted already", "- Event/e: it is not kept for long anyway",
	}
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Error(diff)
	}
}

// TestPlanInACircle: owners of each other come to an end, and back.
func TestPlanInACircle(t *testing.T) {
	p := newPlan([]*part{
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+owned("b", "ConfigMap", false)+"}}"),
		was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, "+owned("a", "ConfigMap", false)+"}}"),
	}, world{})
	if len(p.parts()) != 2 || len(p.leftOut) != 0 {
		t.Error(told(p))
	}
}

// TestClean: what the API, the scheduler and controllers wrote is gone, and the rest is as it was.
func TestClean(t *testing.T) {
	for _, test := range []struct{ resource, was, want string }{
		{"pods", `{apiVersion: v1, kind: Pod, metadata: {name: p, generation: 2, creationTimestamp: x, managedFields: [], finalizers: [orphan, mine/own],
 labels: {a: b}}, spec: {nodeName: n1, priority: 7, priorityClassName: c, ephemeralContainers: [{}], containers: [{name: c}]}, status: {phase: Running}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop, finalizers: [mine/own], labels: {a: b}},
 spec: {priorityClassName: c, containers: [{name: c}]}}`},
		{"secrets", `{apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque, data: {token: eA==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, type: Opaque, data: {token: eA==}}`},
		{"secrets", `{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubernetes.io/service-account.name: clerk,
 kubernetes.io/service-account.uid: u}}, type: kubernetes.io/service-account-token, data: {token: eA==, ca.crt: eA==, namespace: eA==, more: eA==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, annotations: {kubernetes.io/service-account.name: clerk}},
 type: kubernetes.io/service-account-token, data: {more: eA==}}`},
		{"services", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{nodePort: 30001}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {ports: [{nodePort: 30001}]}}`},
		{"services", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {clusterIP: None, clusterIPs: [None]}}`},
		{"jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {job-name: j, own: x}}, spec: {selector: {matchLabels: {controller-uid: u}},
 template: {metadata: {labels: {batch.kubernetes.io/controller-uid: u, own: x}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop, labels: {own: x}}, spec: {template: {metadata: {labels: {own: x}}}}}`},
		{"jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}`},
	} {
		p := was(t, test.resource, test.was)
		clean(p, world{})
		want := map[string]any{}
		if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.object.Object); diff != "" {
			t.Errorf("%s: %s", test.was, diff)
		}
	}
}

// TestPointToNow: references name the new uids of owners that came back, or of those that have their names.
func TestPointToNow(t *testing.T) {
	p := was(t, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+owned("b", "ConfigMap", false)+"}}")
	g := &giver{uids: map[types.UID]types.UID{"uid-of-b": "new"}}
	object := p.object.DeepCopy()
	g.pointToNow(object)
	if got := object.GetOwnerReferences()[0].UID; got != "new" {
		t.Error(got)
	}
}

// TestBeforeDeletion: the newest deletion counts from where it began, and only if the object is gone.
func TestBeforeDeletion(t *testing.T) {
	change := func(revision uint64, uid, did string, began bool) past.Change {
		c := past.Change{ResourceVersion: revision, UID: uid, Did: did}
		if began {
			c.Fields = []past.Field{{Path: "metadata.deletionTimestamp", After: "now"}}
		}
		return c
	}
	for _, test := range []struct {
		changes []past.Change
		want    uint64
		err     error
	}{
		{nil, 0, errUnheard},
		{[]past.Change{change(3, "a", "created", false)}, 0, errExists},
		{[]past.Change{change(3, "a", "created", false), change(9, "a", "deleted", false)}, 8, nil},
		{[]past.Change{change(9, "a", "deleted", false)}, 8, nil},
		{[]past.Change{
			change(9, "a", "deleted", false), change(10, "b", "created", false),
			{ResourceVersion: 11, UID: "b", Fields: []past.Field{{Path: `metadata.annotations["setpoint.io/taken-back"]`}}}, change(12, "b", "deleted", false),
		}, 8, nil},
		{slices.Concat(
			[]past.Change{change(2, "a", "changed", true), change(3, "a", "deleted", false)},
			[]past.Change{change(4, "b", "created", false), change(6, "b", "changed", true), change(7, "b", "changed", false), change(9, "b", "deleted", false)},
		), 5, nil},
	} {
		if got, err := beforeDeletion(past.Answer{Changes: test.changes}); got != test.want || err != test.err {
			t.Errorf("%v: %d, %v", test.changes, got, err)
		}
	}
}
