// Package requestmetrics counts the requests of one API server: how many, how long, how many at once.
//
// It owns Requests, a prometheus.Collector with upstream's names, labels and buckets (k8s.io/apiserver/pkg/endpoints/metrics). Package
// apiserver passes each request through Serve after authorization, where upstream counts; package server registers it for /metrics. It
// calls nothing of this project but internal/histograms.
//
// It promises: a request that was counted before with the same labels costs one map lookup and no lock of this package; labels are of
// kinds that are served, so that a client cannot make new ones without end; nothing is registered outside the value itself.
//
// Tested with requests to a handler, against what a registry gathers.
package requestmetrics
