package podresources

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Path is where the metrics are served.
const Path = "/metrics/resources"

// scrapesMax is how many are answered at once: each has some series for every pod. Further ones get 503.
const scrapesMax = 2

// Pods are all pods that there are now. They are only read.
type Pods func() ([]*corev1.Pod, error)

// Handler serves the metrics.
func Handler(pods Pods) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{pods})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMax})
}

type collector struct{ pods Pods }

func described(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"}, nil)
}

var (
	requested = described("kube_pod_resource_request", "What pods request that have not ended.")
	limited   = described("kube_pod_resource_limit", "What pods may use at most that have not ended.")
)

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) { out <- requested; out <- limited }

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	pods, err := c.pods()
	if err != nil {
		out <- prometheus.NewInvalidMetric(requested, err)
		return
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, pod := range pods {
		if ended(pod) {
			continue
		}
		show(out, requested, pod, resource.PodRequests(pod, resource.PodResourcesOptions{Reuse: requests}))
		show(out, limited, pod, resource.PodLimits(pod, resource.PodResourcesOptions{Reuse: limits}))
	}
}

// ended tells of a pod that ran and does no more; one that never had a node counts whatever its phase, as upstream.
func ended(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// show writes what is not zero.
func show(out chan<- prometheus.Metric, desc *prometheus.Desc, pod *corev1.Pod, amounts corev1.ResourceList) {
	priority := ""
	if pod.Spec.Priority != nil {
		priority = strconv.Itoa(int(*pod.Spec.Priority))
	}
	for name, amount := range amounts {
		if !amount.IsZero() {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, amount.AsApproximateFloat64(),
				pod.Namespace, pod.Name, pod.Spec.NodeName, strings.ToValidUTF8(pod.Spec.SchedulerName, "\uFFFD"), priority, string(name), unit(name))
		}
	}
}

// unit is upstream's for a resource; empty for those that others define.
func unit(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourceCPU:
		return "cores"
	case name == corev1.ResourceMemory, name == corev1.ResourceStorage, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return "bytes"
	case strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix):
		return "integer"
	}
	return ""
}
