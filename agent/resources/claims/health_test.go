package claims

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"

	"github.com/setpoint-io/setpoint/agent/resources/claims/claimstest"
)

func ill(name, why string) []*healthapi.DeviceHealth {
	return []*healthapi.DeviceHealth{{Device: &healthapi.DeviceIdentifier{PoolName: "pool", DeviceName: name}, Health: healthapi.HealthStatus_UNHEALTHY, Message: why}}
}

func statusOf(name string, status corev1.ResourceHealthStatus, why string) []corev1.ResourceStatus {
	h := corev1.ResourceHealth{ResourceID: "dev.example.com/pool/a", Health: status}
	if why != "" {
		h.Message = &why
	}
	return []corev1.ResourceStatus{{Name: corev1.ResourceName(name), Resources: []corev1.ResourceHealth{h}}}
}

// TestADriverTellsOfHealth: the pod is looked at when its device falls ill, and not for others; when the driver is gone nothing is known.
func TestADriverTellsOfHealth(t *testing.T) {
	n := newNode(t, "a")
	d := &claimstest.Driver{Health: make(chan []*healthapi.DeviceHealth)}
	socket := n.use(d)
	p := using("p", "a/r")
	if err := n.Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	check := func(want []corev1.ResourceStatus) {
		t.Helper()
		if diff := cmp.Diff(want, n.Status(p, &p.Spec.Containers[0])); diff != "" {
			t.Error(diff)
		}
	}
	check(statusOf("claim:my-a/r", corev1.ResourceHealthStatusUnknown, ""))
	d.Health <- ill("another", "")
	d.Health <- ill("a", "too hot")
	if pod := <-n.touched; pod != "p" {
		t.Error(pod)
	}
	check(statusOf("claim:my-a/r", corev1.ResourceHealthStatusUnhealthy, "too hot"))
	if len(n.touched) > 0 {
		t.Errorf("looked at %s again", <-n.touched)
	}
	n.Deregister(driverName, socket)
	if pod := <-n.touched; pod != "p" {
		t.Error(pod)
	}
	check(statusOf("claim:my-a/r", corev1.ResourceHealthStatusUnknown, ""))
}

func TestHowLongAWordCounts(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		said  healthapi.HealthStatus
		at    int64
		limit int64
		later time.Duration
		want  corev1.ResourceHealthStatus
	}{
		"now":            {healthapi.HealthStatus_HEALTHY, 0, 0, healthTimeout, "Healthy"},
		"too old":        {healthapi.HealthStatus_HEALTHY, 0, 0, healthTimeout + 1, "Unknown"},
		"old already":    {healthapi.HealthStatus_HEALTHY, 1000 - 40, 0, 0, "Unknown"},
		"its own limit":  {healthapi.HealthStatus_UNHEALTHY, 0, 60, time.Minute, "Unhealthy"},
		"absurd limit":   {healthapi.HealthStatus_UNHEALTHY, 0, 1 << 62, healthTimeoutMax + 1, "Unknown"},
		"negative limit": {healthapi.HealthStatus_HEALTHY, 0, -1, healthTimeout, "Healthy"},
		"in the future":  {healthapi.HealthStatus_HEALTHY, 1 << 40, 0, healthTimeout + 1, "Unknown"},
		"does not know":  {healthapi.HealthStatus_UNKNOWN, 0, 0, 0, "Unknown"},
	} {
		d := &healthapi.DeviceHealth{Health: test.said, LastUpdatedTime: test.at, HealthCheckTimeoutSeconds: test.limit}
		if got := healthOf(d, now).now(now.Add(test.later)).status; got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := (health{}).now(now).status; got != corev1.ResourceHealthStatusUnknown {
		t.Errorf("never told of: %s", got)
	}
}

func TestHealthOfASensibleSize(t *testing.T) {
	known := map[deviceName]health{}
	if err := update(known, ill("a", strings.Repeat("ä", 1000)), time.Now()); err != nil || !utf8.ValidString(known[deviceName{"pool", "a"}].message) {
		t.Errorf("%v, %q", err, known[deviceName{"pool", "a"}].message)
	}
	if err := update(known, ill("a", strings.Repeat("x", 2000)), time.Now()); err != nil || len(known[deviceName{"pool", "a"}].message) != 1024 {
		t.Errorf("%v %v", known, err)
	}
	if err := update(known, ill(strings.Repeat("x", nameBytesMax), ""), time.Now()); err == nil {
		t.Error("a long name")
	}
	for i := range healthDevicesMax + 1 {
		known[deviceName{"pool", time.Duration(i).String()}] = health{}
	}
	if err := update(known, nil, time.Now()); err == nil {
		t.Error("too many")
	}
}
