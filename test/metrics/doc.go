// Package metrics asks Prometheus' own engine what the rules that clusters are watched with ask, of two scrapes of a running server.
//
// It plays the alerts of deploy/monitoring, each by its cause and by nothing else, and asks for what the panels of the dashboards show. What nodes
// tell is not scraped here: those expressions are parsed only.
//
// It is a module of its own, because Prometheus is large: make metrics. Expressions are those of kubernetes-mixin in their names and labels.
package metrics
