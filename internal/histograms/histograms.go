package histograms

import "github.com/prometheus/client_golang/prometheus"

// Upstream's (k8s.io/component-base/metrics).
const (
	nativeFactor     = 1.1
	nativeBucketsMax = 160
)

// Options are of a histogram with these bounds of classic buckets.
func Options(name, help string, bounds []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: bounds,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: nativeBucketsMax,
	}
}
