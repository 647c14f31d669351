package apiserver

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

func TestUpdateRefusals(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	mustDo[corev1.ConfigMap](t, server, call{method: "PUT", path: cmPath + "/a", body: strings.Replace(cmBody("a"), `"v"`, `"w"`, 1)})
	mustDo[coordinationv1.Lease](t, server, call{method: "PUT", path: leasePath + "/l", body: `{"metadata":{"name":"l"}}`})
	meta := func(m string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + m + `},"data":{"k":"x"}}`
	}
	conflict := refusal{code: 409, reason: metav1.StatusReasonConflict, name: "a", kind: "configmaps",
		messageHas: `Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`}
	for name, c := range map[string]struct {
		call
		want refusal
	}{
		"stale":               {call{body: meta(`"name":"a","resourceVersion":"2"`)}, conflict},
		"future":              {call{body: meta(`"name":"a","resourceVersion":"99"`)}, conflict},
		"stale patch":         {call{method: "PATCH", contentType: patchTypeOf["merge"], body: meta(`"name":"a","resourceVersion":"2"`)}, conflict},
		"other uid":           {call{body: meta(`"name":"a","uid":"other"`)}, refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: "Precondition failed: UID in precondition: other, UID in object meta: "}},
		"other name":          {call{body: meta(`"name":"b"`)}, refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "the name of the object (b) does not match the name on the URL (a)"}},
		"other namespace":     {call{body: meta(`"name":"a","namespace":"x"`)}, refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "namespace of the provided object does not match"}},
		"missing":             {call{path: cmPath + "/b", body: meta(`"name":"b"`)}, refusal{code: 404, reason: metav1.StatusReasonNotFound, name: "b", kind: "configmaps"}},
		"missing, patched":    {call{method: "PATCH", contentType: patchTypeOf["merge"], path: cmPath + "/b", body: `{}`}, refusal{code: 404, reason: metav1.StatusReasonNotFound, name: "b", kind: "configmaps"}},
		"unconditional lease": {call{path: leasePath + "/l", body: `{"metadata":{"name":"l"},"spec":{"holderIdentity":"x"}}`}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "metadata.resourceVersion: Invalid value: 0: must be specified for an update"}},
		"patched to nonsense": {call{method: "PATCH", contentType: patchTypeOf["merge"], body: `{"data":"x"}`}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "cannot unmarshal string"}},
		"bad patch":           {call{method: "PATCH", contentType: patchTypeOf["merge"], body: `[]`}, refusal{code: 400, reason: metav1.StatusReasonBadRequest}},
		"patch test fails":    {call{method: "PATCH", contentType: patchTypeOf["json"], body: `[{"op":"test","path":"/data/k","value":"other"}]`}, refusal{code: 422, reason: metav1.StatusReasonInvalid}},
		"patched name":        {call{method: "PATCH", contentType: patchTypeOf["merge"], body: `{"metadata":{"name":"c"}}`}, refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "the name of the object (c) does not match the name on the URL (a)"}},
	} {
		request := c.call
		request.method = orDefault(request.method, "PUT")
		request.path = orDefault(request.path, cmPath+"/a")
		c.want.check(t, name, request.do(t, server))
	}
}

func TestUpdatesThatChangeNothing(t *testing.T) {
	server, _ := newServer(t)
	d := mustDo[appsv1.Deployment](t, server, call{method: "POST", path: depPath, body: depBody("d")})
	for name, c := range map[string]call{
		"put":             {method: "PUT", path: depPath + "/d", body: depBody("d")},
		"merge patch":     {method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":2}}`},
		"strategic patch": {method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["strategic"], body: `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`},
		"json patch":      {method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["json"], body: `[{"op":"replace","path":"/spec/replicas","value":2}]`},
		"status by main":  {method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["merge"], body: `{"status":{"replicas":5}}`},
		"spec by status":  {method: "PATCH", path: depPath + "/d/status", contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":5}}`},
	} {
		got := mustDo[appsv1.Deployment](t, server, c)
		if got.ResourceVersion != d.ResourceVersion || got.Generation != 1 {
			t.Errorf("%s: resourceVersion %s to %s, generation %d", name, d.ResourceVersion, got.ResourceVersion, got.Generation)
		}
	}
}

func TestGenerationCountsSpecChanges(t *testing.T) {
	server, _ := newServer(t)
	mustDo[appsv1.Deployment](t, server, call{method: "POST", path: depPath, body: depBody("d")})
	for _, c := range []struct {
		path, body string
		want       int64
	}{
		{depPath + "/d", `{"metadata":{"labels":{"x":"y"}}}`, 1},
		{depPath + "/d/status", `{"status":{"replicas":3,"observedGeneration":1}}`, 1},
		{depPath + "/d", `{"spec":{"replicas":3}}`, 2},
		{depPath + "/d", `{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`, 3},
		{depPath + "/d", `{"metadata":{"generation":9}}`, 3},
	} {
		got := mustDo[appsv1.Deployment](t, server, call{method: "PATCH", path: c.path, contentType: patchTypeOf["merge"], body: c.body})
		if got.Generation != c.want {
			t.Errorf("%s: generation %d, want %d", c.body, got.Generation, c.want)
		}
	}
	got := mustDo[appsv1.Deployment](t, server, call{path: depPath + "/d"})
	if got.Status.Replicas != 3 || *got.Spec.Replicas != 3 || got.Labels["x"] != "y" {
		t.Errorf("end = %+v %+v", got.Spec, got.Status)
	}
}

func TestPutCreatesWhereAllowed(t *testing.T) {
	server, _ := newServer(t)
	got := call{method: "PUT", path: leasePath + "/l", body: `{"metadata":{"name":"l"},"spec":{"holderIdentity":"x"}}`}.do(t, server)
	if got.code != 201 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	got = call{method: "PUT", path: leasePath + "/m", body: `{"metadata":{"name":"m","resourceVersion":"5"}}`}.do(t, server)
	refusal{code: 409, reason: metav1.StatusReasonConflict}.check(t, "with a version", got)
}

// TestPatchesNeverConflict: patches without a resourceVersion are decided again
// until they fit, all kinds of them, many at once.
func TestPatchesNeverConflict(t *testing.T) {
	server, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	const each = 8
	kinds := map[types.PatchType]string{
		types.MergePatchType:          `{"data":{"merge%[1]d":"x"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic%[1]d":"x"}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/json%[1]d","value":"x"}]`,
		types.ApplyYAMLPatchType:      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"apply%[1]d":"x"}}`,
	}
	var wg sync.WaitGroup
	for kind, body := range kinds {
		for i := range each {
			wg.Go(func() {
				options := metav1.PatchOptions{FieldManager: fmt.Sprint("m", i)}
				if _, err := cms.Patch(t.Context(), "a", kind, fmt.Appendf(nil, body, i), options); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			})
		}
	}
	wg.Wait()
	got, err := cms.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || len(got.Data) != 1+len(kinds)*each {
		t.Errorf("%d keys, want %d: %v", len(got.Data), 1+len(kinds)*each, err)
	}
}

// TestUpdatesLoseNothing: of writers that read, add one and write back, each
// success counts once.
func TestUpdatesLoseNothing(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	if _, err := cms.Create(t.Context(), configMap("a", map[string]string{"n": ""}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const writers, writes = 8, 10
	for range writers {
		wg.Go(func() {
			for done := 0; done < writes; {
				cm, err := cms.Get(t.Context(), "a", metav1.GetOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				cm.Data["n"] += "x"
				switch _, err = cms.Update(t.Context(), cm, metav1.UpdateOptions{}); {
				case err == nil:
					done++
				case !apierrors.IsConflict(err):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if cm, err := cms.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || len(cm.Data["n"]) != writers*writes {
		t.Errorf("counted %d, want %d: %v", len(cm.Data["n"]), writers*writes, err)
	}
}

// TestStrategicDirectives are those that kubectl apply sends.
func TestStrategicDirectives(t *testing.T) {
	server, _ := newServer(t)
	body := strings.Replace(depBody("d"), `[{"name":"c","image":"i"}]`, `[{"name":"c","image":"i","env":[{"name":"A","value":"1"}]},{"name":"e","image":"i"}]`, 1)
	mustDo[appsv1.Deployment](t, server, call{method: "POST", path: depPath, body: body})
	patch := `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"f"},{"name":"c"}],` +
		`"containers":[{"name":"f","image":"j"},{"name":"e","$patch":"delete"},{"name":"c","env":[{"$patch":"replace"},{"name":"B","value":"2"}]}]},` +
		`"metadata":{"$retainKeys":["labels"],"labels":{"a":"b"}}},"strategy":{"$retainKeys":["type"],"type":"Recreate","rollingUpdate":null}}}`
	got := mustDo[appsv1.Deployment](t, server, call{method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["strategic"], body: patch})
	containers := got.Spec.Template.Spec.Containers
	if len(containers) != 2 || containers[0].Name != "f" || containers[1].Name != "c" || containers[1].Env[0].Name != "B" || len(containers[1].Env) != 1 {
		t.Errorf("containers = %+v", containers)
	}
	if got.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || got.Spec.Strategy.RollingUpdate != nil {
		t.Errorf("strategy = %+v", got.Spec.Strategy)
	}
}

func TestJSONPatchOperationsAreBounded(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	op := `{"op":"test","path":"/data/k","value":"v"}`
	body := "[" + strings.Repeat(op+",", maxPatchOperations) + op + "]"
	got := call{method: "PATCH", path: cmPath + "/a", contentType: patchTypeOf["json"], body: body}.do(t, server)
	refusal{code: 413, reason: metav1.StatusReasonRequestEntityTooLarge, messageHas: "The allowed maximum operations in a JSON patch is"}.check(t, "operations", got)
}

// maxPatchOperations is the limit of upstream's handlers, which do not export it.
const maxPatchOperations = 10000

// TestFaultsAreToldOnce: the common rules for updates judge labels twice.
func TestFaultsAreToldOnce(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	got := call{method: "PATCH", path: cmPath + "/a", contentType: patchTypeOf["merge"], body: `{"metadata":{"labels":{"a":"bad value!"}}}`}.do(t, server)
	if got.code != 422 || len(got.status.Details.Causes) != 1 {
		t.Errorf("%d %s, want one cause", got.code, got.body)
	}
}

// TestTaintRulesNeedAVersion in an update.
func TestTaintRulesNeedAVersion(t *testing.T) {
	server, _ := newServer(t)
	const path = "/apis/resource.k8s.io/v1/devicetaintrules"
	body := `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"t"},"spec":{"taint":{"key":"k","effect":"NoSchedule"}}}`
	if got := (call{method: "POST", path: path, body: body}).do(t, server); got.code != 201 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "metadata.resourceVersion: Invalid value: 0: must be specified for an update"}.
		check(t, "no version", call{method: "PUT", path: path + "/t", body: body}.do(t, server))
}

// TestWarningsOfChanges: of names when objects are created, of tokens when they change.
func TestWarningsOfChanges(t *testing.T) {
	server, _ := newServer(t)
	warned := func(c call, want string) {
		t.Helper()
		got := c.do(t, server)
		if all := strings.Join(got.header.Values("Warning"), "\n"); got.code > 299 || want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %d %q, want %q", c.path, got.code, all, want)
		}
	}
	warned(call{method: "POST", path: depPath, body: depBody("a.b")}, "a DNS label is recommended: [must not contain dots]")
	warned(call{method: "PATCH", path: depPath + "/a.b", contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":3}}`}, "")
	const drivers = "/apis/storage.k8s.io/v1/csidrivers"
	warned(call{method: "POST", path: drivers, body: `{"metadata":{"name":"d"},"spec":{"tokenRequests":[{"audience":"a"}]}}`}, "spec.serviceAccountTokenInSecrets is unset")
	warned(call{method: "PATCH", path: drivers + "/d", contentType: patchTypeOf["merge"], body: `{"metadata":{"labels":{"a":"b"}}}`}, "")
	warned(call{method: "PATCH", path: drivers + "/d", contentType: patchTypeOf["merge"], body: `{"spec":{"tokenRequests":[{"audience":"b"}]}}`}, "spec.serviceAccountTokenInSecrets is unset")
}
