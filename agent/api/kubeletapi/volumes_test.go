package kubeletapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// oneVolume is that of the pod u.
type oneVolume struct{}

func (oneVolume) All() []stats.VolumeStats {
	return []stats.VolumeStats{{Name: "v", PVCRef: &stats.PVCReference{Namespace: "ns", Name: "data"}, FsStats: stats.FsStats{
		CapacityBytes: count(100), AvailableBytes: count(60), UsedBytes: count(40), Inodes: count(10), InodesFree: count(7), InodesUsed: count(3)}}}
}

func (o oneVolume) Of(pod types.UID) []stats.VolumeStats {
	if pod != "u" {
		return nil
	}
	return o.All()
}

func TestVolumesOfClaims(t *testing.T) {
	s := newServer(Config{NodeName: "n", Runtime: podstest.New(nil), Pods: onePod{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}},
		Dirs: podconfig.Dirs{Root: t.TempDir()}, VolumeStats: oneVolume{}})
	s.samples.add(sample{use: reading{containers: map[string]*runtimeapi.ContainerStats{"x": {
		Attributes: &runtimeapi.ContainerAttributes{Id: "x", Labels: map[string]string{observed.LabelPodUID: "u"}}}}}})
	get := func(path string) string {
		t.Helper()
		rec := httptest.NewRecorder()
		s.handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		if rec.Code != http.StatusOK {
			t.Fatalf("%s: %d", path, rec.Code)
		}
		return rec.Body.String()
	}
	want := `"volume":[{"time":null,"availableBytes":60,"capacityBytes":100,"usedBytes":40,"inodesFree":7,"inodes":10,"inodesUsed":3,` +
		`"name":"v","pvcRef":{"name":"data","namespace":"ns"}}]`
	if got := get("/stats/summary"); !strings.Contains(got, want) {
		t.Errorf("summary has no %s:\n%s", want, got)
	}
	metrics := get("/metrics")
	for _, line := range []string{
		`kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="data"} 100`,
		`kubelet_volume_stats_available_bytes{namespace="ns",persistentvolumeclaim="data"} 60`,
		`kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="data"} 40`,
		`kubelet_volume_stats_inodes{namespace="ns",persistentvolumeclaim="data"} 10`,
		`kubelet_volume_stats_inodes_free{namespace="ns",persistentvolumeclaim="data"} 7`,
		`kubelet_volume_stats_inodes_used{namespace="ns",persistentvolumeclaim="data"} 3`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s", line)
		}
	}
}
