package expiry

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// Max is how many certificates are told of at most: those that end first.
const Max = 1000

// Known is what a server knows. All fields are required.
type Known struct {
	// Own are its certificates and the authorities', Nodes those of nodes.
	Own, Nodes func() []trust.Expiry
	// Storage has the objects with bundles.
	Storage *storage.Store
}

// All are those that end first, at most Max, in the order of their ends.
func (k Known) All() []trust.Expiry {
	all := slices.Concat(k.Own(), k.Nodes(), bundles(k.Storage))
	slices.SortFunc(all, func(a, b trust.Expiry) int {
		return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), Max)]
}

var expires = prometheus.NewDesc("setpoint_certificate_expiry_timestamp_seconds",
	"When a certificate ends, in seconds since 1970: its kind, and whose it is.", []string{"kind", "name"}, nil)

// Describe implements prometheus.Collector.
func (Known) Describe(out chan<- *prometheus.Desc) { out <- expires }

// Collect implements prometheus.Collector.
func (k Known) Collect(out chan<- prometheus.Metric) {
	for _, e := range k.All() {
		out <- prometheus.MustNewConstMetric(expires, prometheus.GaugeValue, float64(e.Expires.Unix()), e.Kind, e.Name)
	}
}
