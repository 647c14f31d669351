package server

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookDelay is far longer than watches go on when a server stops.
const webhookDelay = 2 * time.Second

// TestAWriteThatRunsFinishes: a server that stops lets the write of a client whose webhook takes its
// time come to its end.
func TestAWriteThatRunsFinishes(t *testing.T) {
	cluster, addresses, servers, _ := startThree(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, s := range servers {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	asked := make(chan struct{}, 100)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		asked <- struct{}{}
		<-time.After(webhookDelay)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer hook.Close()
	client := clientAt(t, cluster, addresses[0])
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, slowWebhook(hook), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	for called := false; !called; { // until this server knows the webhook
		go func() {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "slow-", Labels: map[string]string{"slow": "yes"}}}
			_, err := client.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
			written <- err
		}()
		select {
		case <-asked:
			called = true
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	start := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- servers[0].Stop() }()
	if err := <-written; err != nil {
		t.Errorf("the write that ran: %v", err)
	}
	if err := <-stopped; err != nil || time.Since(start) > webhookDelay+5*time.Second {
		t.Errorf("stopped after %v: %v", time.Since(start), err)
	}
}

func slowWebhook(hook *httptest.Server) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "slow"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "slow.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
			},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"slow": "yes"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
}
