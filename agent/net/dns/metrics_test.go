package dns

import (
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestMetricsSayWhatWasDropped before it arrived, as the network counts it.
func TestMetricsSayWhatWasDropped(t *testing.T) {
	client := fake.NewClientset()
	s := newServer(Config{Informers: informers.NewSharedInformerFactory(client, 0), Client: client, Network: &held{}, Domain: "cluster.local"})
	answer := httptest.NewRecorder()
	s.metrics.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if text := answer.Body.String(); !strings.Contains(text, "\nsetpoint_dns_dropped_total 7\n") {
		t.Error(text)
	}
}
