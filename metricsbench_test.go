package setpoint_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
)

// BenchmarkScrape is the time of /metrics on a server with 100,000 objects, in both formats.
func BenchmarkScrape(b *testing.B) {
	cluster, err := setpoint.Start(b.Context(), setpoint.Config{InMemory: true, APIOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cluster.Stop() })
	if err := cluster.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	access, err := cluster.RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	access.QPS = -1
	client := kubernetes.NewForConfigOrDie(access)
	var writers sync.WaitGroup
	for range 32 {
		writers.Go(func() {
			for range 100_000 / 32 {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}
				if _, err := client.CoreV1().ConfigMaps("default").Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	for name, accept := range map[string]string{
		"text": "text/plain", "protobuf": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", accept).DoRaw(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(text)), "bytes")
			}
		})
	}
}
