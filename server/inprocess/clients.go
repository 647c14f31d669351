package inprocess

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/internal/histograms"
)

// host is that of the in-process clients, in their URLs and as a label.
const host = "in-process"

// clients counts the requests of all in-process clients, under upstream's names (component-base/metrics/prometheus/restclient). The zero
// value counts from 0. It is not client-go's own registration, which is one for the whole process.
type clients struct {
	once     sync.Once
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func (c *clients) metrics() *clients {
	c.once.Do(func() {
		c.total = prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Requests of this server's own clients, by status code, method and host.",
		}, []string{"code", "method", "host"})
		c.duration = prometheus.NewHistogramVec(histograms.Options(
			"rest_client_request_duration_seconds", "Time until the header of the answer, by method and host.",
			[]float64{0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0},
		), []string{"verb", "host"})
	})
	return c
}

// answered counts a request; without a response the code is upstream's "<error>".
func (c *clients) answered(method string, response *http.Response, begun time.Time) {
	code := "<error>"
	if response != nil {
		code = strconv.Itoa(response.StatusCode)
	}
	c.metrics()
	c.total.WithLabelValues(code, method, host).Inc()
	c.duration.WithLabelValues(method, host).Observe(time.Since(begun).Seconds())
}

// Describe implements prometheus.Collector for what clients ask through the door.
func (d *Door) Describe(out chan<- *prometheus.Desc) {
	c := d.clients.metrics()
	c.total.Describe(out)
	c.duration.Describe(out)
}

// Collect implements prometheus.Collector.
func (d *Door) Collect(out chan<- prometheus.Metric) {
	c := d.clients.metrics()
	c.total.Collect(out)
	c.duration.Collect(out)
}
