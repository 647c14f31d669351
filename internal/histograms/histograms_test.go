package histograms

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// durations are like those of requests: from microseconds to minutes.
func durations() []float64 {
	random, list := rand.New(rand.NewPCG(1, 2)), make([]float64, 4096)
	for i := range list {
		list[i] = math.Exp(random.NormFloat64()*2 - 6)
	}
	return list
}

// TestBothForms: classic and native buckets count the same, and the native ones stay within their limit.
func TestBothForms(t *testing.T) {
	h := prometheus.NewHistogram(Options("a_seconds", "Help.", []float64{0.01, 1}))
	for _, d := range durations() {
		h.Observe(d)
	}
	got := &dto.Metric{}
	if err := h.Write(got); err != nil {
		t.Fatal(err)
	}
	classic, native := got.Histogram.GetBucket(), got.Histogram.GetPositiveSpan()
	buckets := uint32(0)
	for _, span := range native {
		buckets += span.GetLength()
	}
	if got.Histogram.GetSampleCount() != 4096 || len(classic) != 2 || buckets < 50 || buckets > nativeBucketsMax || got.Histogram.GetSchema() == 0 {
		t.Errorf("%d classic and %d native buckets of schema %d", len(classic), buckets, got.Histogram.GetSchema())
	}
}

func BenchmarkObserve(b *testing.B) {
	list := durations()
	for name, options := range map[string]prometheus.HistogramOpts{
		"both":    Options("a_seconds", "Help.", prometheus.DefBuckets),
		"classic": {Name: "a_seconds", Help: "Help.", Buckets: prometheus.DefBuckets},
	} {
		b.Run(name, func(b *testing.B) {
			h := prometheus.NewHistogram(options)
			for i := 0; b.Loop(); i++ {
				h.Observe(list[i%len(list)])
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			h := prometheus.NewHistogram(options)
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					h.Observe(list[i%len(list)])
				}
			})
		})
	}
}
