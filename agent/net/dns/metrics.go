package dns

import (
	"net/http"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/setpoint-io/setpoint/agent/net/dns/forward"
)

// metrics have CoreDNS's names where they mean the same.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	responses *prometheus.CounterVec
	took      prometheus.Histogram
	forwarded forward.Counts
}

func newMetrics(s *server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coredns_dns_requests_total", Help: "Questions, by protocol and type.",
		}, []string{"proto", "type"}),
		responses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coredns_dns_responses_total", Help: "Answers, by their code.",
		}, []string{"rcode"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "coredns_dns_request_duration_seconds", Help: "Time from a question to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 4, 8),
		}),
	}
	m.registry.MustRegister(m.requests, m.responses, m.took)
	for name, value := range map[string]func() float64{
		"coredns_cache_hits_total":                     func() float64 { return float64(m.forwarded.Hits.Load()) },
		"coredns_cache_misses_total":                   func() float64 { return float64(m.forwarded.Misses.Load()) },
		"coredns_cache_served_stale_total":             func() float64 { return float64(m.forwarded.Stale.Load()) },
		"coredns_proxy_requests_total":                 func() float64 { return float64(m.forwarded.Asked.Load()) },
		"setpoint_dns_forward_failed_total":            func() float64 { return float64(m.forwarded.Failed.Load()) },
		"coredns_forward_max_concurrent_rejects_total": func() float64 { return float64(m.forwarded.Busy.Load()) },
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: "Names that are not the cluster's."}, value))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "coredns_cache_entries", Help: "Answers of other servers that are kept.",
	}, func() float64 { return float64(s.cached()) }))
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "setpoint_dns_dropped_total", Help: "Questions of UDP, and connections of TCP, that were beyond the share of who sent them.",
	}, s.dropped))
	return m
}

// dropped starts again from 0 when the rules are made anew, as counters may.
func (s *server) dropped() float64 {
	packets, err := s.Network.Dropped()
	if err != nil {
		s.Logger.Debug("what was dropped is not known", "err", err)
	}
	return float64(packets)
}

// cached is how many answers are kept.
func (s *server) cached() (n int) {
	if r := s.routes.Load(); r != nil {
		for _, f := range r.all() {
			n += f.CacheEntries()
		}
	}
	return n
}

// commonTypes have a label of their own, so that clients cannot make as many as there are numbers.
var commonTypes = map[uint16]string{
	dns.TypeA: "A", dns.TypeAAAA: "AAAA", dns.TypeCNAME: "CNAME", dns.TypeHTTPS: "HTTPS", dns.TypeMX: "MX", dns.TypeNS: "NS",
	dns.TypePTR: "PTR", dns.TypeSOA: "SOA", dns.TypeSRV: "SRV", dns.TypeTXT: "TXT",
}

func (m *metrics) count(protocol string, qtype uint16, rcode int, took time.Duration) {
	name := commonTypes[qtype]
	if name == "" {
		name = "other"
	}
	m.requests.WithLabelValues(protocol, name).Inc()
	m.responses.WithLabelValues(dns.RcodeToString[rcode]).Inc()
	m.took.Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 5 * time.Second})
}
