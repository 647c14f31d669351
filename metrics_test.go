package setpoint_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
)

// TestWhoReadsMetrics: the group system:monitoring may, as upstream's bootstrap policy says, and others may not.
func TestWhoReadsMetrics(t *testing.T) {
	_, access := started(t, setpoint.Config{})
	as := func(groups ...string) rest.Interface {
		user := rest.CopyConfig(access)
		user.Impersonate = rest.ImpersonationConfig{UserName: "prometheus", Groups: groups}
		return kubernetes.NewForConfigOrDie(user).CoreV1().RESTClient()
	}
	for _, c := range []struct{ path, want string }{
		{"/livez", "ok"}, {"/readyz/ping", "ok"}, {"/metrics", "apiserver_request_total{"}, {"/metrics", "apiserver_storage_size_bytes{"},
		{"/metrics", `apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle",operation="CREATE"`},
		{"/metrics", "apiserver_admission_step_admission_duration_seconds_count{"}, {"/metrics/slis", "kubernetes_healthcheck{"}, {"/statusz", "apiserver statusz"},
	} {
		path, want := c.path, c.want
		got, err := as("system:monitoring").Get().AbsPath(path).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %v, want %q in\n%.200s", path, err, want, got)
		}
	}
	if _, err := as("system:masters").Get().AbsPath("/metrics/resources").DoRaw(t.Context()); err != nil {
		t.Errorf("/metrics/resources: %v", err)
	}
	for _, path := range []string{"/metrics", "/metrics/slis", "/metrics/resources", "/statusz"} {
		if _, err := as("somebody").Get().AbsPath(path).DoRaw(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", path, err)
		}
	}
}

// TestNativeHistograms: whoever asks for protobuf has native buckets beside the classic ones.
func TestNativeHistograms(t *testing.T) {
	_, access := started(t, setpoint.Config{})
	const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	body, err := kubernetes.NewForConfigOrDie(access).CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", accept).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	wanted := map[string]bool{
		"apiserver_request_duration_seconds": true, "apiserver_admission_step_admission_duration_seconds": true,
		"rest_client_request_duration_seconds": true,
	}
	for decoder := expfmt.NewDecoder(body, expfmt.NewFormat(expfmt.TypeProtoDelim)); ; {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h.GetSchema() != 0 && len(h.GetPositiveSpan()) > 0 && len(h.GetBucket()) > 0 {
				delete(wanted, family.GetName())
			}
		}
	}
	for name := range wanted {
		t.Errorf("%s has no native buckets", name)
	}
}
