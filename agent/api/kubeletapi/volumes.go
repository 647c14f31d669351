package kubeletapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// volumeCollector tells how full volumes are, under upstream's names.
type volumeCollector struct{ VolumeStats }

// Describe says nothing in advance.
func (volumeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect tells the latest measurements.
func (c volumeCollector) Collect(to chan<- prometheus.Metric) {
	var k sink
	for _, v := range c.All() {
		k.volume(v)
	}
	k.Collect(to)
}

func (k *sink) volume(v stats.VolumeStats) {
	l := series{[]string{"namespace", "persistentvolumeclaim"}, []string{v.PVCRef.Namespace, v.PVCRef.Name}}
	for _, n := range []struct {
		name, help string
		value      *uint64
	}{
		{"kubelet_volume_stats_capacity_bytes", "Capacity in bytes of the volume", v.CapacityBytes},
		{"kubelet_volume_stats_available_bytes", "Number of available bytes in the volume", v.AvailableBytes},
		{"kubelet_volume_stats_used_bytes", "Number of used bytes in the volume", v.UsedBytes},
		{"kubelet_volume_stats_inodes", "Maximum number of inodes in the volume", v.Inodes},
		{"kubelet_volume_stats_inodes_free", "Number of free inodes in the volume", v.InodesFree},
		{"kubelet_volume_stats_inodes_used", "Number of used inodes in the volume", v.InodesUsed},
	} {
		k.put(n.name, n.help, prometheus.GaugeValue, float64(*n.value), time.Time{}, l)
	}
}
