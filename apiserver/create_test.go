package apiserver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCreateRefusals(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("taken")})
	mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"leaving"}}`})
	mustDo[corev1.Namespace](t, server, call{method: "DELETE", path: "/api/v1/namespaces/leaving"})
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`})
	mustDo[corev1.ConfigMap](t, server, call{method: "DELETE", path: cmPath + "/held"})
	meta := func(m string) string { return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + m + `}}` }
	for name, c := range map[string]struct {
		call
		want refusal
	}{
		"resourceVersion":     {call{body: meta(`"name":"a","resourceVersion":"1"`)}, refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "resourceVersion should not be set on objects to be created"}},
		"taken":               {call{body: cmBody("taken")}, refusal{code: 409, reason: metav1.StatusReasonAlreadyExists, messageHas: `configmaps "taken" already exists`, name: "taken", kind: "configmaps"}},
		"leaving":             {call{body: cmBody("held")}, refusal{code: 409, reason: metav1.StatusReasonAlreadyExists, messageHas: `object is being deleted: configmaps "held" already exists`, name: "held", kind: "configmaps"}},
		"other namespace":     {call{body: meta(`"name":"a","namespace":"kube-system"`)}, refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "the namespace of the provided object does not match the namespace sent on the request"}},
		"no name":             {call{body: meta(``)}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "name or generateName is required", kind: "ConfigMap"}},
		"bad name":            {call{body: meta(`"name":"A_b"`)}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "a lowercase RFC 1123 subdomain", name: "A_b", kind: "ConfigMap"}},
		"bad label":           {call{body: meta(`"name":"a","labels":{"a b":"c"}`)}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "metadata.labels", name: "a", kind: "ConfigMap"}},
		"other kind":          {call{body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`}, refusal{code: 400, reason: metav1.StatusReasonBadRequest}},
		"missing namespace":   {call{path: strings.Replace(cmPath, "default", "nowhere", 1), body: cmBody("a")}, refusal{code: 404, reason: metav1.StatusReasonNotFound, messageHas: `namespaces "nowhere" not found`, name: "nowhere", kind: "namespaces"}},
		"leaving namespace":   {call{path: strings.Replace(cmPath, "default", "leaving", 1), body: cmBody("a")}, refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: `unable to create new content in namespace leaving because it is being terminated`, name: "a", kind: "configmaps"}},
		"wrong verb":          {call{method: "PUT", body: cmBody("a")}, refusal{code: 405, reason: metav1.StatusReasonMethodNotAllowed}},
		"named":               {call{path: cmPath + "/a", body: cmBody("a")}, refusal{code: 405, reason: metav1.StatusReasonMethodNotAllowed}},
		"unknown dryRun":      {call{path: cmPath + "?dryRun=Some", body: cmBody("a")}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "dryRun"}},
		"long field manager":  {call{path: cmPath + "?fieldManager=" + strings.Repeat("m", 129), body: cmBody("a")}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "fieldManager"}},
		"no containers":       {call{path: podPath, body: `{"metadata":{"name":"p"},"spec":{}}`}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "spec.containers: Required value", name: "p", kind: "Pod"}},
		"all namespaces":      {call{path: "/api/v1/configmaps", body: cmBody("a")}, refusal{code: 405, reason: metav1.StatusReasonMethodNotAllowed}},
		"other group's event": {call{path: "/apis/events.k8s.io/v1/namespaces/default/events", body: `{"metadata":{"name":"e"}}`}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: `Event "e" is invalid`, name: "e", kind: "Event"}},
		"namespace of a node": {call{path: "/api/v1/namespaces/default/nodes", body: `{"metadata":{"name":"n"}}`}, refusal{code: 404, reason: metav1.StatusReasonNotFound}},
	} {
		request := c.call
		request.method = orDefault(request.method, "POST")
		request.path = orDefault(request.path, cmPath)
		c.want.check(t, name, request.do(t, server))
	}
	got := call{method: "POST", path: strings.Replace(cmPath, "default", "leaving", 1), body: cmBody("a")}.do(t, server)
	if cause, ok := got.cause(corev1.NamespaceTerminatingCause); !ok || cause.Field != "metadata.namespace" {
		t.Errorf("no cause: %s", got.body)
	}
}

func TestCreateStamps(t *testing.T) {
	server, _ := newServer(t)
	body := `{"metadata":{"name":"d","uid":"mine","generation":7,"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"},` +
		strings.TrimPrefix(depBody("d"), `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},`)
	d := mustDo[struct {
		metav1.ObjectMeta `json:"metadata"`
		Status            map[string]any
	}](t, server, call{method: "POST", path: depPath, body: strings.TrimSuffix(body, "}") + `,"status":{"replicas":9}}`})
	if d.UID == "mine" || d.Generation != 1 || d.CreationTimestamp.Year() == 2001 || d.DeletionTimestamp != nil || d.SelfLink != "" || len(d.Status) != 0 {
		t.Errorf("created = %+v", d)
	}
	if d.CreationTimestamp.Nanosecond() != 0 || d.Namespace != "default" || len(d.ManagedFields) != 1 {
		t.Errorf("created = %+v", d)
	}
}

func TestGeneratedNames(t *testing.T) {
	server, _ := newServer(t)
	long := strings.Repeat("x", 70)
	cm := mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: `{"metadata":{"generateName":"` + long + `"}}`})
	if len(cm.Name) != 63 || !strings.HasPrefix(cm.Name, long[:58]) {
		t.Errorf("name = %q", cm.Name)
	}
	dry := mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath + "?dryRun=All", body: `{"metadata":{"generateName":"g-"}}`})
	if !strings.HasPrefix(dry.Name, "g-") || dry.ResourceVersion != "" || dry.UID == "" {
		t.Errorf("dry run = %+v", dry)
	}
}

// TestDryRunOfACreateWithAResourceVersion is allowed, as upstream allows it: controller-runtime's clients rely on it.
func TestDryRunOfACreateWithAResourceVersion(t *testing.T) {
	server, _ := newServer(t)
	got := mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath + "?dryRun=All", body: `{"metadata":{"name":"a","resourceVersion":"7"}}`})
	if got.Name != "a" {
		t.Errorf("got %+v", got.ObjectMeta)
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound}.check(t, "stored", call{path: cmPath + "/a"}.do(t, server))
}

// TestEveryCreationStamps: whichever way an object is created, its system fields are the server's.
func TestEveryCreationStamps(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, crontabs)
	const old = `"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":30,"selfLink":"/x"`
	body := func(apiVersion, kind, name string) string {
		spec := ""
		if kind == "CronTab" {
			spec = `,"spec":{}`
		}
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{"name":"` + name + `",` + old + `}` + spec + `}`
	}
	const leases, roles = "/apis/coordination.k8s.io/v1/namespaces/default/leases", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
	apply := patchTypeOf["apply"]
	for name, c := range map[string]call{
		"POST":              {method: "POST", path: cmPath, body: body("v1", "ConfigMap", "a")},
		"PUT":               {method: "PUT", path: leases + "/a", body: body("coordination.k8s.io/v1", "Lease", "a")},
		"PUT, not plain":    {method: "PUT", path: leases + "/b?pretty=true", body: body("coordination.k8s.io/v1", "Lease", "b")},
		"apply":             {method: "PATCH", path: cmPath + "/b?fieldManager=m", contentType: apply, body: body("v1", "ConfigMap", "b")},
		"apply of a Role":   {method: "PATCH", path: roles + "/a?fieldManager=m", contentType: apply, body: body("rbac.authorization.k8s.io/v1", "Role", "a")},
		"POST of a custom":  {method: "POST", path: crontabPath, body: body("stable.example.com/v1", "CronTab", "a")},
		"apply of a custom": {method: "PATCH", path: crontabPath + "/b?fieldManager=m", contentType: apply, body: body("stable.example.com/v1", "CronTab", "b")},
		"dry run":           {method: "PATCH", path: cmPath + "/c?fieldManager=m&dryRun=All", contentType: apply, body: body("v1", "ConfigMap", "c")},
	} {
		m := mustDo[metav1.PartialObjectMetadata](t, server, c)
		if m.UID == "" || m.CreationTimestamp.Year() < 2002 || m.DeletionTimestamp != nil || m.DeletionGracePeriodSeconds != nil || m.SelfLink != "" {
			t.Errorf("%s: %+v", name, m.ObjectMeta)
		}
	}
}
