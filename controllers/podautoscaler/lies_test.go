package podautoscaler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// TestMetricsThatLie: whatever a server of metrics says, the number of pods stays within the limits, and a condition and an event say
// when nothing can be made of it.
func TestMetricsThatLie(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name, cpu string
		at        time.Time
		desired   int32
		active    string
	}{
		{"plain", "1", noon, 4, "True ValidMetricFound"},
		{"no number", "NaN", noon, 0, "False FailedGetResourceMetric"},
		{"endless", "Inf", noon, 0, "False FailedGetResourceMetric"},
		{"nothing", "", noon, 0, "False FailedGetResourceMetric"},
		{"negative", "-500m", noon, 2, "True ValidMetricFound"},
		{"huge", "9E", noon, 4, "True ValidMetricFound"},
		{"hugely negative", "-9E", noon, 2, "True ValidMetricFound"},
		{"beyond counting", "1" + strings.Repeat("0", 300), noon, 4, "True ValidMetricFound"},
		{"of last year", "1", noon.Add(-year), 4, "True ValidMetricFound"},
		{"of next year", "1", noon.Add(year), 4, "True ValidMetricFound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				var items []string
				for i := range 2 {
					items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"ns","name":"p%d"},"timestamp":%q,"window":"1m","containers":[{"name":"c","usage":{"cpu":%q}}]}`,
						i, c.at.UTC().Format(time.RFC3339), c.cpu))
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[%s]}`, strings.Join(items, ","))
			}))
			defer server.Close()
			client, err := resourceclient.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			o := seen(autoscaler(1, 9), 500, 500)
			o.readings[0] = reading{}
			o.readings[0].samples, o.readings[0].err = requests{resources: client}.Resource(t.Context(), "ns", labels.Everything(), corev1.ResourceCPU, "")
			p := planOf(o)
			if active := conditionOf(p, autoscalingv2.ScalingActive); p.status.DesiredReplicas != c.desired || active != c.active {
				t.Errorf("desired %d, active %q (%v); want %d, %q", p.status.DesiredReplicas, active, o.readings[0], c.desired, c.active)
			}
			if failed := strings.HasPrefix(c.active, "False"); failed != (len(p.events) > 0) || failed && p.rescale {
				t.Errorf("events %v, rescale %v", p.events, p.rescale)
			}
		})
	}
}
