// Package metrics asks Prometheus' own engine what the rules that clusters are watched with ask, of two scrapes of a running server.
//
// It is a module of its own, because Prometheus is large: make metrics. Expressions are those of kubernetes-mixin in their names and labels.
package metrics
