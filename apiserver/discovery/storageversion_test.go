package discovery_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/apiserver/pkg/endpoints/discovery"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
)

// TestStorageVersionHash: each resource that is kept tells in which version, by upstream's hash; versions that share objects tell the
// same one, and subresources have none.
func TestStorageVersionHash(t *testing.T) {
	handler, err := discovery.New(discovery.Config{Kinds: kinds.All()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, resource, want string }{
		{"/api/v1", "pods", "xPOwRZ+Yhw8="}, // as any kube-apiserver says
		{"/api/v1", "events", upstream.StorageVersionHash("", "v1", "Event")},
		{"/apis/events.k8s.io/v1", "events", upstream.StorageVersionHash("", "v1", "Event")},
		{"/apis/autoscaling/v1", "horizontalpodautoscalers", upstream.StorageVersionHash("autoscaling", "v2", "HorizontalPodAutoscaler")},
		{"/apis/autoscaling/v2", "horizontalpodautoscalers", upstream.StorageVersionHash("autoscaling", "v2", "HorizontalPodAutoscaler")},
		{"/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies/status", ""},
		{"/api/v1", "pods/status", ""},
	} {
		var list metav1.APIResourceList
		if err := json.Unmarshal([]byte(body(t, get(t, handler, c.path))), &list); err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		found := false
		for _, r := range list.APIResources {
			if r.Name == c.resource {
				found = true
				if r.StorageVersionHash != c.want {
					t.Errorf("%s %s: %q, want %q", c.path, c.resource, r.StorageVersionHash, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no %s", c.path, c.resource)
		}
	}
}
