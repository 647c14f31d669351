package scenes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookThatRefuses refuses pods without a label, beside one that allows all and one that is asked about nothing here: `why`
// names it and its message. The label ends what was held; pods of others are not asked about and come meanwhile.
func webhookThatRefuses(s *scene) {
	strict := s.webhook(func(pod *corev1.Pod) string {
		if pod.Labels["team"] == "" {
			return "every pod names its team"
		}
		return ""
	})
	lenient := s.webhook(func(*corev1.Pod) string { return "" })
	hooks := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	fail, effects := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := func(name string, access admissionregistrationv1.WebhookClientConfig, resource string) {
		_, err := hooks.Create(s.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &effects, FailurePolicy: &fail, ClientConfig: access,
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
				Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}}}},
			}},
		}, metav1.CreateOptions{})
		s.must(err)
		s.Cleanup(func() { _ = hooks.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	hook("lenient", lenient, "pods")
	hook("elsewhere", lenient, "configmaps")
	hook("strict", strict, "pods")
	s.see("the webhook is asked", func(ctx context.Context) (string, bool) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		_, err := s.client.CoreV1().Pods(s.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "every pod names its team")
	})
	s.deploy("shop", 2, nil)
	s.seeEvent("ReplicaSet", "FailedCreate", "every pod names its team")
	s.see("why", func(ctx context.Context) (string, bool) {
		answer := s.why(ctx, "deployment", "shop")
		return fmt.Sprintf("%+v", answer), answer.blames("strict", "every pod names its team") &&
			answer.clears("lenient") && answer.clears("elsewhere") && !answer.blames("lenient", "") && !answer.blames("elsewhere", "")
	})
	s.change("shop", func(d *appsv1.Deployment) { d.Spec.Template.Labels["team"] = "sea" })
	s.seeDeployment("shop", "complete", complete)
	s.see("nothing holds it", func(ctx context.Context) (string, bool) {
		answer := s.why(ctx, "deployment", "shop")
		return fmt.Sprintf("%+v", answer), !answer.Held
	})
}

// webhook serves reviews of pods until the test ends; judge says why one is refused.
func (s *scene) webhook(judge func(*corev1.Pod) string) admissionregistrationv1.WebhookClientConfig {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		pod := &corev1.Pod{}
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil || json.Unmarshal(review.Request.Object.Raw, pod) != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		refusal := judge(pod)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == "", Result: &metav1.Status{Message: refusal}}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the caller has gone
	}))
	s.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority}
}

// answer is what `setpoint why -o json` prints, as far as it is of interest here.
type answer struct {
	Held   bool    `json:"held"`
	Causes []cause `json:"causes"`
	// Innocent are those that hold nothing.
	Innocent []struct {
		Object named `json:"object"`
	} `json:"innocent"`
}

type cause struct {
	Object named   `json:"object"`
	What   string  `json:"what"`
	Causes []cause `json:"causes"`
}

type named struct {
	Name string `json:"name"`
}

// why asks the server what `setpoint why` asks.
func (s *scene) why(ctx context.Context, kind, name string) (a answer) {
	s.Helper()
	question, err := json.Marshal(map[string]string{"kind": kind, "namespace": s.namespace, "name": name})
	s.must(err)
	text, err := s.client.CoreV1().RESTClient().Post().AbsPath("/setpoint.v1.ClusterService/Why").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(question).Do(ctx).Raw()
	s.must(err)
	s.must(json.Unmarshal(text, &a))
	return a
}

func (a answer) blames(name, what string) bool { return blamed(a.Causes, name, what) }

func blamed(causes []cause, name, what string) bool {
	for _, c := range causes {
		if c.Object.Name == name && strings.Contains(c.What, what) || blamed(c.Causes, name, what) {
			return true
		}
	}
	return false
}

func (a answer) clears(name string) bool {
	for _, suspect := range a.Innocent {
		if suspect.Object.Name == name {
			return true
		}
	}
	return false
}
