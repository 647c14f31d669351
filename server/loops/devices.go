package loops

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// Names, labels and buckets are those of upstream's dynamic-resource-allocation/resourceclaim/metrics and
// pkg/controller/{resourceclaim,devicetainteviction}/metrics.
var (
	claimCreations = prometheus.NewDesc("dynamic_resource_allocation_resourceclaim_creates_total",
		"Attempts of the loops to create ResourceClaims, by their end, admin access, and group and kind of the owner.",
		[]string{"status", "admin_access", "owner_api_group", "owner_api_kind"}, nil)
	resourceClaims = prometheus.NewDesc("dynamic_resource_allocation_resource_claims",
		"ResourceClaims, by whether they are allocated, admin access, and what they were made from.",
		[]string{"allocated", "admin_access", "source"}, nil)
)

// collectDevices shows what the controllers of devices do.
func collectDevices(counts numbers.DeviceCounts, out chan<- prometheus.Metric) {
	for how, n := range counts.Creations {
		out <- prometheus.MustNewConstMetric(claimCreations, prometheus.CounterValue, float64(n),
			how.Status, strconv.FormatBool(how.Admin), how.OwnerGroup, how.OwnerKind)
	}
	for state, n := range counts.Claims {
		out <- prometheus.MustNewConstMetric(resourceClaims, prometheus.GaugeValue, float64(n),
			strconv.FormatBool(state.Allocated), strconv.FormatBool(state.Admin), state.Source)
	}
}
