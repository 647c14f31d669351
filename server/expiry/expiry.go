package expiry

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// Max is how many certificates are told of at most beside those of nodes: those that end first. Of nodes all are told that a server
// remembers, since one that leaves out a certificate that ends late leaves the word to another server that knows the former only.
const Max = 1000

// Known is what a server knows. All fields are required.
type Known struct {
	// Own are its certificates and the authorities', Nodes those of nodes.
	Own, Nodes func() []trust.Expiry
	// Storage has the objects with bundles.
	Storage *storage.Store
}

// All are those of nodes, and of the others those that end first, at most Max, in the order of their ends.
func (k Known) All() []trust.Expiry {
	others := slices.Concat(k.Own(), bundles(k.Storage))
	slices.SortFunc(others, compare)
	all := append(k.Nodes(), others[:min(len(others), Max)]...)
	slices.SortFunc(all, compare)
	return all
}

func compare(a, b trust.Expiry) int {
	return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
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
