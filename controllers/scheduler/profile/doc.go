// Package profile says how the scheduler treats the pods of each schedulerName: with which plugins, weights and limits.
//
// It owns the reading of a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) and the defaults without one. The
// command and package server read the file once when a server starts; the scheduler makes one engine of each Profile. It
// may import the sibling packages plugin and plugins, and the published types of k8s.io/kube-scheduler.
//
// Promises: a field is honoured or refused, with an error in one line that names it; nothing is accepted and then ignored.
// Without a file the scheduler works as upstream's default profile.
//
// The way of a file: decoded strictly (read.go); what has no meaning here refused (refused.go); the lists of enabled and
// disabled plugins resolved for each extension point, as upstream's framework does (points.go); args completed, checked
// and given to the plugins (args.go).
//
// Tested by tables: what is resolved, what is refused and how.
package profile
