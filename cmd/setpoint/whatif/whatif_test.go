package whatif

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

func TestQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		q    Question
		want error
	}{
		"nothing":            {Question{For: time.Hour}, errOneAct},
		"two":                {Question{For: time.Hour, Drain: "a", File: "b"}, errOneAct},
		"no time":            {Question{Drain: "a"}, errFor},
		"too much time":      {Question{Drain: "a", For: forMax + 1}, errFor},
		"a node of no name":  {Question{Lose: []string{"a", ""}, For: time.Hour}, errLose},
		"scaled to nothing":  {Question{Scale: "deployment/web", For: time.Hour}, errScale},
		"scaled below zero":  {Question{Scale: "deployment/web=-1", For: time.Hour}, errScale},
		"scaled beyond":      {Question{Scale: "deployment/web=99999999999", For: time.Hour}, errScale},
		"a scaled nothing":   {Question{Scale: "web=1", For: time.Hour}, errScale},
		"delete of a kind":   {Question{Delete: "deployment/", For: time.Hour}, errDelete},
		"delete of a path":   {Question{Delete: "deployment/a/b", For: time.Hour}, errDelete},
		"a drain":            {Question{Drain: "a", For: time.Hour}, nil},
		"scaled to zero":     {Question{Scale: "deployment/web=0", For: time.Hour}, nil},
		"a file, as a drain": {Question{File: "-", For: time.Hour}, nil},
	} {
		if err := c.q.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
}

// TestWhatIsOutside is not called, and named; Secrets have names and no values.
func TestWhatIsOutside(t *testing.T) {
	r := begin(t, 1)
	ctx, create := t.Context(), metav1.CreateOptions{}
	_, err := r.client.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key", Annotations: map[string]string{"copy": "hush"}}, StringData: map[string]string{"key": "hush"},
	}, create)
	r.must(err)
	nowhere := "https://127.0.0.1:1/no"
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	_, err = r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "away"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "refuses.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &nowhere},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, create)
	r.must(err)
	_, err = r.client.BatchV1().CronJobs("default").Create(ctx, &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "often"},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}}}},
	}, create)
	r.must(err)
	_, err = r.client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "scaler"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		},
	}, create)
	r.must(err)
	_, err = r.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "far"}, Provisioner: "csi.example.com",
	}, create)
	r.must(err)

	f := r.fork()
	said := strings.Join(f.copied.assumptions(), "\n")
	for _, name := range []string{"refuses.example.com", "default/often", "scaler", "csi.example.com"} {
		if !strings.Contains(said, name) {
			t.Errorf("%s is not named:\n%s", name, said)
		}
	}
	secret, err := f.client.CoreV1().Secrets("default").Get(ctx, "key", metav1.GetOptions{})
	r.must(err)
	if len(secret.Data) > 0 || len(secret.Annotations) > 0 {
		t.Errorf("the fork knows what is in a Secret: %v %v", secret.Data, secret.Annotations)
	}
	_, err = f.client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}, create)
	if err != nil {
		t.Errorf("a webhook that is outside was asked: %v", err)
	}
	answer := play(t, f, Question{Lose: []string{"sim-1"}, For: time.Hour}, "")
	if !answer.Quiet {
		t.Errorf("CronJobs go on: %v", answer.Restless)
	}
}

func (r *reality) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestRefusals are one sentence each.
func TestRefusals(t *testing.T) {
	r := begin(t, 1)
	if _, err := open(t.Context(), r.ClientConfig(adminUser()), 1); !errors.Is(err, errTooLarge) {
		t.Errorf("larger than the bound: %v", err)
	}
	if _, err := open(t.Context(), r.ClientConfig(&user.DefaultInfo{Name: "eve"}), forkBytesMax); err == nil {
		t.Error("eve has a fork")
	}
	for want, q := range map[string]Question{
		`there is no node "nope"`:             {Drain: "nope"},
		`there is no node "neither"`:          {Lose: []string{"sim-1", "neither"}},
		"deployments.apps \"nope\" not found": {Scale: "deployment/nope=1"},
		"doesn't have a resource type":        {Delete: "nothing/of-this-kind"},
		"this is refused: error":              {File: "-"},
	} {
		q.For, q.Namespace = time.Hour, metav1.NamespaceDefault
		f := r.fork()
		err := f.play(t.Context(), q, strings.NewReader("no manifest"), &Answer{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
	for question, want := range map[string]string{
		`{"drain":"nope"}`: `there is no node "nope"`, `{"delete":"deployment/nope"}`: `deployments.apps "nope" not found`,
	} {
		_, err := AskInJSON(t.Context(), []*rest.Config{r.ClientConfig(adminUser())}, []byte(question))
		refused, ok := errors.AsType[*admin.Refusal](err)
		if !ok || refused.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(refused.Reason, want) {
			t.Errorf("%s: %v", question, err)
		}
	}
}

// TestATimeThatIsTooShort leaves a fork that is not quiet, which the answer says: the loss is noticed only after it.
func TestATimeThatIsTooShort(t *testing.T) {
	r := begin(t, 1)
	answer := play(t, r.fork(), Question{Lose: []string{"sim-1"}, For: 30 * time.Second}, "")
	if answer.Quiet || !slices.Contains(answer.Restless, "nodes/sim-1") || time.Duration(answer.Lasted) != 30*time.Second {
		t.Errorf("%+v", answer)
	}
	var out bytes.Buffer
	if err := answer.print(&out); err != nil || !strings.Contains(out.String(), "it still changes after 30s") {
		t.Error(err, out.String())
	}
}

// TestHabits are what was seen of pods with the same containers.
func TestHabits(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	pod := func(image string, ready corev1.ConditionStatus, after time.Duration) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(image + after.String()), CreationTimestamp: at(time.Hour)}}
		p.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: image}}}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(time.Hour)},
			{Type: corev1.PodReady, Status: ready, LastTransitionTime: at(time.Hour - after)},
		}}
		return p
	}
	again := pod("slow", corev1.ConditionTrue, time.Second)
	again.UID, again.Status.ContainerStatuses = "again", []corev1.ContainerStatus{{RestartCount: 1}}
	blinked := pod("slow", corev1.ConditionTrue, 50*time.Minute)
	job := pod("job", corev1.ConditionFalse, 0)
	job.Status.Phase = corev1.PodSucceeded
	job.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{StartedAt: at(time.Hour), FinishedAt: at(50 * time.Minute)},
	}}}
	h := learn([]*corev1.Pod{
		pod("slow", corev1.ConditionTrue, 20*time.Second), pod("slow", corev1.ConditionTrue, 40*time.Second), pod("slow", corev1.ConditionTrue, 30*time.Second),
		again, blinked, blinked, blinked, blinked, pod("slow", corev1.ConditionFalse, 0), pod("stuck", corev1.ConditionFalse, 0), job,
	}, now)
	if got := h.of(pod("slow", "", 1)); got.ReadyAfter != 30*time.Second || got.Never {
		t.Errorf("slow: %+v", got)
	}
	if got := h.of(pod("slow", corev1.ConditionFalse, 0)); !got.Never {
		t.Errorf("one of a kind that does not come to it: %+v", got)
	}
	if got := h.of(pod("stuck", "", 0)); !got.Never {
		t.Errorf("stuck: %+v", got)
	}
	if got := h.of(pod("job", "", 0)); got.Runs != 10*time.Minute {
		t.Errorf("job: %+v", got)
	}
	if got := h.of(pod("new", "", 0)); got.Never || got.ReadyAfter != 0 || got.Runs != 0 {
		t.Errorf("new: %+v", got)
	}
}
