// Package podresources tells what the pods of the cluster request, and what they may use at most: /metrics/resources.
//
// Upstream's scheduler serves these metrics, kube_pod_resource_request and kube_pod_resource_limit; here every server does, of the pods
// that its replica has. The wiring (package server) gives it the pods and mounts the handler. It calls nothing of this project.
//
// It promises: names, labels and units are upstream's; nothing is computed before somebody asks, and not more than scrapesMax at once.
//
// Tested with made-up pods.
package podresources
