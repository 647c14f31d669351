package setpoint_test

import (
	"strings"
	"testing"

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
		{"/metrics", "apiserver_admission_step_admission_duration_seconds_count{"}, {"/metrics/slis", "kubernetes_healthcheck{"},
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
	for _, path := range []string{"/metrics", "/metrics/slis", "/metrics/resources"} {
		if _, err := as("somebody").Get().AbsPath(path).DoRaw(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", path, err)
		}
	}
}
