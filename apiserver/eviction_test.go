package apiserver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

const pdbPath = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

func runningPod(t *testing.T, server *Server, name, ready string) {
	t.Helper()
	body := `{"metadata":{"name":"` + name + `","labels":{"app":"web"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: body})
	status := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"` + ready + `"}]}}`
	mustDo[corev1.Pod](t, server, call{method: "PATCH", path: podPath + "/" + name + "/status", contentType: patchTypeOf["merge"], body: status})
}

func budget(t *testing.T, server *Server, name, status string) {
	t.Helper()
	body := `{"metadata":{"name":"` + name + `"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}}}`
	mustDo[policyv1.PodDisruptionBudget](t, server, call{method: "POST", path: pdbPath, body: body})
	setBudget(t, server, name, status)
}

func setBudget(t *testing.T, server *Server, name, status string) {
	t.Helper()
	mustDo[policyv1.PodDisruptionBudget](t, server, call{method: "PATCH", path: pdbPath + "/" + name + "/status", contentType: patchTypeOf["merge"], body: `{"status":` + status + `}`})
}

func evict(t *testing.T, server *Server, name string) answer {
	t.Helper()
	return call{method: "POST", path: podPath + "/" + name + "/eviction", body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + name + `"}}`}.do(t, server)
}

func causes(got answer) string {
	if got.status.Details == nil || len(got.status.Details.Causes) == 0 {
		return ""
	}
	return string(got.status.Details.Causes[0].Type) + ": " + got.status.Details.Causes[0].Message
}

func TestEvictionAsksTheBudget(t *testing.T) {
	server, _ := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		runningPod(t, server, name, "True")
	}
	runningPod(t, server, "ill", "False")
	budget(t, server, "web", `{"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":3}`)

	refusal{code: 429, reason: metav1.StatusReasonTooManyRequests}.check(t, "not observed yet", evict(t, server, "a"))
	setBudget(t, server, "web", `{"observedGeneration":1}`)
	if got := evict(t, server, "a"); got.code != 201 || got.status.Status != metav1.StatusSuccess {
		t.Fatalf("within the budget: %d %s", got.code, got.body)
	}
	pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/a"})
	marked := pod.Status.Conditions[len(pod.Status.Conditions)-1]
	if pod.DeletionTimestamp == nil || marked.Type != corev1.DisruptionTarget || marked.Reason != "EvictionByEvictionAPI" {
		t.Errorf("pod = %+v", pod)
	}
	taken := mustDo[policyv1.PodDisruptionBudget](t, server, call{path: pdbPath + "/web"})
	if _, noted := taken.Status.DisruptedPods["a"]; !noted || taken.Status.DisruptionsAllowed != 0 {
		t.Errorf("budget = %+v", taken.Status)
	}

	setBudget(t, server, "web", `{"currentHealthy":1}`)
	got := evict(t, server, "b")
	refusal{code: 429, reason: metav1.StatusReasonTooManyRequests, messageHas: "Cannot evict pod as it would violate the pod's disruption budget."}.check(t, "beyond the budget", got)
	if why := causes(got); why != "DisruptionBudget: The disruption budget web needs 1 healthy pods and has 1 currently" {
		t.Errorf("cause = %q", why)
	}
	if got := evict(t, server, "ill"); got.code != 201 {
		t.Errorf("a pod that is not ready, while enough are: %d %s", got.code, got.body)
	}

	setBudget(t, server, "web", `{"disruptionsAllowed":5}`)
	budget(t, server, "also", `{"disruptionsAllowed":5}`)
	if got := evict(t, server, "c"); got.status.Status != metav1.StatusFailure || !strings.Contains(got.status.Message, "more than one PodDisruptionBudget") {
		t.Errorf("two budgets: %d %s", got.code, got.body)
	}
}

// Jobs orphan their pods unless told otherwise, and say so.
func TestJobDeletionWarnsOfOrphans(t *testing.T) {
	server, _ := newServer(t)
	const jobs = "/apis/batch/v1/namespaces/default/jobs"
	body := `{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	for i, test := range []struct {
		query  string
		warned bool
	}{{"?propagationPolicy=Background", false}, {"", true}} {
		mustDo[batchv1.Job](t, server, call{method: "POST", path: jobs, body: body})
		got := call{method: "DELETE", path: jobs + "/j" + test.query}.do(t, server)
		if warned := strings.Contains(got.header.Get("Warning"), "child pods are preserved by default"); got.code != 200 || warned != test.warned {
			t.Errorf("%d: %d, warned %v", i, got.code, warned)
		}
	}
}

// Old clients send Evictions of policy/v1beta1, as JSON or protobuf; a version that never was is refused.
func TestEvictionOfAnOldClient(t *testing.T) {
	server, _ := newServer(t)
	evict := func(name, contentType, body string) answer {
		t.Helper()
		runningPod(t, server, name, "True")
		return call{method: "POST", path: podPath + "/" + name + "/eviction", contentType: contentType, body: body}.do(t, server)
	}
	const text = `{"apiVersion":"policy/%s","kind":"Eviction","metadata":{"name":"%s"},"deleteOptions":{"gracePeriodSeconds":7}}`
	binary := protobufOf(t, &policyv1beta1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "protobuf"}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(7))}})
	for name, c := range map[string]struct {
		contentType, body string
		code              int
	}{
		"json":     {jsonType, fmt.Sprintf(text, "v1beta1", "json"), 201},
		"newest":   {jsonType, fmt.Sprintf(text, "v1", "newest"), 201},
		"protobuf": {protobufType, binary, 201},
		"never":    {jsonType, fmt.Sprintf(text, "v1alpha1", "never"), 400},
	} {
		t.Run(name, func(t *testing.T) {
			got := evict(name, c.contentType, c.body)
			if got.code != c.code {
				t.Fatalf("%d %s", got.code, got.body)
			}
			pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/" + name})
			if gone := pod.DeletionTimestamp != nil; gone != (c.code == 201) || gone && *pod.DeletionGracePeriodSeconds != 7 {
				t.Errorf("deleted at %v, grace %v", pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds)
			}
		})
	}
}

// protobufOf is the envelope that client-go sends.
func protobufOf(t *testing.T, eviction *policyv1beta1.Eviction) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := policyv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	eviction.APIVersion, eviction.Kind = "policy/v1beta1", "Eviction"
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(eviction, &body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}
