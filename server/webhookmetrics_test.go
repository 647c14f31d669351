package server

import (
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// TestWebhooksAreMeasured: a webhook's time, which upstream's code keeps, is shown, and nothing else that other code keeps there.
func TestWebhooksAreMeasured(t *testing.T) {
	about := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "ns", "p",
		schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create, nil, false, nil)
	admissionmetrics.Metrics.ObserveWebhook(t.Context(), "slow.example.com", 3*time.Second, false, about, "validate", 200)
	families, err := ofWebhooks(legacyregistry.DefaultGatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours, found := regexp.MustCompile(`admission|authorization_webhook|authorization_match|jwt_authenticator`), false
	for _, f := range families {
		found = found || f.GetName() == "apiserver_admission_webhook_admission_duration_seconds"
		if !ours.MatchString(f.GetName()) {
			t.Errorf("%s is no metric of webhooks, policies and issuers", f.GetName())
		}
	}
	if !found {
		t.Errorf("the webhook is not among %v", families)
	}
}
