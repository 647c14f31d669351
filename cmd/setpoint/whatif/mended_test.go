package whatif

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

func (r *reality) asked(q Question, stdin string) *Answer {
	r.t.Helper()
	q.Namespace = metav1.NamespaceDefault
	if q.For == 0 {
		q.For = forDefault
	}
	return play(r.t, r.fork(), q, stdin)
}

// TestNews: after the end of an object another may have its name.
func TestNews(t *testing.T) {
	var changes []setpoint.Change
	for i, verb := range []string{"update", "update", "delete", "create", "update"} {
		changes = append(changes, setpoint.Change{Verb: verb, Name: "db-0", Revision: uint64(i), Resource: schema.GroupResource{Resource: "pods"}})
	}
	var verbs []string
	for _, change := range news(changes) {
		verbs = append(verbs, change.Verb)
	}
	if want := []string{"update", "delete", "create"}; !slices.Equal(verbs, want) {
		t.Errorf("%v, not %v", verbs, want)
	}
	mine := inprocess.Server.GetName()
	for _, own := range []setpoint.Change{
		{Verb: "update", Resource: schema.GroupResource{Resource: "secrets"}, Name: "a", User: mine},
		{Verb: "create", Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "any", Name: "kube-root-ca.crt"},
		{Verb: "update", Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		{
			Verb: "delete", Resource: schema.GroupResource{Group: "certificates.k8s.io", Resource: "clustertrustbundles"},
			Name: "kubernetes.io:kube-apiserver-serving:1234",
		},
	} {
		theirs := own
		theirs.User, theirs.Name = "admin", "theirs"
		if all := news([]setpoint.Change{own, theirs}); len(all) != 1 || all[0] != theirs {
			t.Errorf("of a change by which the fork says who it is, and one of somebody: %v", all)
		}
	}
}

// TestTheLoopsOfAForkAct from its first step on: a fork has all that a cluster begins with, and so was taken for ready before they did.
func TestTheLoopsOfAForkAct(t *testing.T) {
	f := begin(t, 1).fork()
	if err := f.Advance(t.Context(), stepLength); err != nil {
		t.Fatal(err)
	}
	report, err := admin.FetchLoops(t.Context(), f.config())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Loops, func(l numbers.Report) bool { return l.Loop == "node-controller" && l.Passes > 0 }) {
		t.Errorf("nobody has looked at the nodes yet: %d loops act", len(report.Loops))
	}
}

// TestWhatIsDue: a fork in which nothing changes for minutes is not quiet while something is known to come.
func TestWhatIsDue(t *testing.T) {
	r := begin(t, 2)
	r.kubectl("create", "deployment", "web", "--image=web", "--replicas=2")
	r.kubectl("expose", "deployment", "web", "--port=80")
	r.pass(10 * time.Second)
	f := r.fork()
	for kind := range f.habits.byKind {
		f.habits.byKind[kind] = simulated.Habit{ReadyAfter: 3 * time.Minute}
	}
	q := Question{File: "-", Namespace: metav1.NamespaceDefault, For: forDefault}
	if answer := play(t, f, Question{Scale: "deployment/web=4", Namespace: q.Namespace, For: q.For}, ""); !answer.Quiet ||
		len(answer.NotReady) > 0 || time.Duration(answer.Lasted) < 3*time.Minute {
		t.Errorf("pods that start for three minutes: %+v", answer)
	}
	slow := strings.Replace(deployment("slow", "v1", 2, 1), "replicas:", "minReadySeconds: 300, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, replicas:", 1)
	r.kubectl("apply", "--filename="+r.file(slow))
	r.pass(6 * time.Minute)
	answer := r.asked(q, strings.Replace(slow, "web:v1", "web:v2", 1))
	if !answer.Quiet || len(answer.Moved) != 2 || time.Duration(answer.Lasted) < 10*time.Minute {
		t.Errorf("a rollout of pods that must be ready for five minutes: %+v", answer)
	}
	if answer := r.asked(Question{Scale: "deployment/web=2", For: time.Minute}, ""); !answer.Quiet {
		t.Errorf("nothing changes, and there is a minute: %+v", answer)
	}
	if answer := r.asked(Question{Lose: []string{"sim-1"}, For: 20 * time.Second}, ""); answer.Quiet {
		t.Errorf("a loss that is noticed after --for: %+v", answer)
	}
}

// TestAMalformedQuestion of a page is the page's mistake, and no server is asked: it was told as if no server had answered.
func TestAMalformedQuestion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server is asked") }))
	t.Cleanup(server.Close)
	for _, question := range []string{
		``, `drain`, `{"drain":1}`, `{"drain":"n","all":true}`, `{}`, `{"drain":"n","scale":"deployment/web=1"}`, `{"lose":["n",""]}`,
		`{"scale":"deployment/web"}`, `{"delete":"web"}`, `{"file":"-"}`,
		`{"drain":"n"}{"drain":"m"}`, `{"drain":"n"} and more`,
	} {
		_, err := AskInJSON(t.Context(), []*rest.Config{{Host: server.URL}}, []byte(question))
		if refused, ok := errors.AsType[*admin.Refusal](err); !ok || refused.StatusCode != http.StatusBadRequest || refused.Reason == "" {
			t.Errorf("%s: %#v", question, err)
		}
	}
	server.Close()
	if _, err := AskInJSON(t.Context(), []*rest.Config{{Host: server.URL}}, []byte(`{"drain":"n"}`)); err == nil {
		t.Error("nobody has answered")
	} else if refused, ok := errors.AsType[*admin.Refusal](err); ok {
		t.Errorf("a question that nobody has answered is refused: %v", refused)
	}
}

// TestRefusedPods are told with the reason, whatever refuses them.
func TestRefusedPods(t *testing.T) {
	r := begin(t, 1)
	r.kubectl("label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted")
	r.pass(4 * time.Second)
	answer := r.asked(Question{File: "-"}, deployment("web", "v1", 2, 1))
	if len(answer.Refused) != 1 || answer.Refused[0].Object != "deployment/web" || !strings.Contains(answer.Refused[0].Said, "violates PodSecurity") {
		t.Errorf("%+v", answer)
	}
}

// TestAPodOfTwoBudgets hinders the eviction of no other pod, and the answer says what hinders it.
func TestAPodOfTwoBudgets(t *testing.T) {
	r := begin(t, 2)
	r.kubectl("apply", "--filename="+r.file(deployment("web", "v1", 2, 1), budgetOf("web", 1),
		strings.Replace(budgetOf("web", 1), "name: web", "name: other", 1), apart("free")))
	r.pass(10 * time.Second)
	answer := r.asked(Question{Drain: "sim-1", For: time.Minute}, "")
	if len(answer.Budgets) == 0 || answer.Quiet || !slices.ContainsFunc(answer.Ended, func(p Pod) bool { return p.Owner == "deployment/free" }) &&
		!slices.ContainsFunc(answer.Moved, func(m Move) bool { return m.From.Owner == "deployment/free" }) {
		t.Errorf("%+v", answer)
	}
}

// TestNamesThatComeAgain: a pod of a StatefulSet moves, and a Service that is deleted is not one without endpoints.
func TestNamesThatComeAgain(t *testing.T) {
	r := begin(t, 2)
	set := strings.Replace(strings.Replace(daemonSet("db"), "DaemonSet", "StatefulSet", 1), "spec: {", "spec: {replicas: 1, ", 1)
	r.kubectl("apply", "--filename="+r.file(set, service("db")))
	r.pass(10 * time.Second)
	answer := r.asked(Question{Delete: "pod/db-0", States: true}, "")
	if len(answer.Moved) != 1 || !answer.Moved[0].To.Ready {
		t.Errorf("%+v", answer)
	}
	now, then := answer.States.Now[0], answer.States.Then[0] // by namespace, so those of the servers come after it
	if now.Name != "db-0" || then.Name != "db-0" || now.UID == "" || then.UID == "" || now.UID == then.UID {
		t.Errorf("the states do not tell the pod from the one that was made again: %+v, %+v", now, then)
	}
	if answer := r.asked(Question{Delete: "service/db"}, ""); len(answer.Services) > 0 {
		t.Errorf("%+v", answer.Services)
	}
}

// TestWhatAManifestBrings is not called either, and holds still.
func TestWhatAManifestBrings(t *testing.T) {
	var calls atomic.Int32
	outside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer outside.Close()
	outside.Config.ErrorLog = nil
	r := begin(t, 1)
	answer := r.asked(Question{File: "-"}, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [
  {name: w.example.com, failurePolicy: Fail, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "`+outside.URL+`"},
   rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}]}
---
`+deployment("web", "v1", 2, 1)+`
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: often}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec:
  {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: up}, spec: {minReplicas: 5, maxReplicas: 9,
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}
`)
	said := strings.Join(answer.Assumptions, "\n")
	if calls.Load() > 0 || !answer.Quiet || len(answer.Made) != 2 || !strings.Contains(said, "default/often") || !strings.Contains(said, "default/up") {
		t.Errorf("%d calls, %+v", calls.Load(), answer)
	}
}

// TestTypesOfSecrets are all that is read of them.
func TestTypesOfSecrets(t *testing.T) {
	r := begin(t, 1)
	typed := `{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: example.com/own, stringData: {key: hush}}`
	r.kubectl("apply", "--filename="+r.file(typed))
	config := rest.CopyConfig(r.ClientConfig(adminUser()))
	inner := config.Transport
	var leaked atomic.Bool
	config.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(req)
		if err == nil && strings.HasSuffix(req.URL.Path, "/secrets") {
			response.Body = &watched{ReadCloser: response.Body, leaked: &leaked}
		}
		return response, err
	})
	types, err := typesOfSecrets(t.Context(), config)
	if err != nil || types["default/pull"] != "example.com/own" || leaked.Load() {
		t.Error(types, err, leaked.Load())
	}
	if answer := r.asked(Question{File: "-"}, typed); !answer.Quiet {
		t.Errorf("%+v", answer)
	}
}

// TestServersOnLostNodes: without a majority of them nothing of what a fork does would come.
func TestServersOnLostNodes(t *testing.T) {
	c := &copying{
		servers:   map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"},
		addresses: map[string][]corev1.NodeAddress{"machine-1": {{Address: "10.0.0.1"}}, "machine-2": {{Address: "10.0.0.2"}}, "d": {{Address: "10.0.0.4"}}},
	}
	f := &fork{copied: c}
	if err := f.majority([]string{"machine-1", "machine-2"}); err == nil || !strings.Contains(err.Error(), "2 of the 3 servers") {
		t.Error(err)
	}
	if err := f.majority([]string{"d"}); err != nil || len(c.notes) > 0 {
		t.Error(err, c.notes)
	}
	if err := f.majority([]string{"machine-1", "d"}); err != nil || len(c.notes) != 1 {
		t.Error(err, c.notes)
	}
}

// TestNodesThatAreNotReady are off only if nothing is heard of them.
func TestNodesThatAreNotReady(t *testing.T) {
	for status, off := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true} {
		c, err := newCopying(nil)
		if err != nil {
			t.Fatal(err)
		}
		c.node(&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}})
		if c.nodes[0].Off != off || (len(c.unready) > 0) != (status != corev1.ConditionTrue) {
			t.Errorf("%s: %+v %v", status, c.nodes[0], c.unready)
		}
	}
}
