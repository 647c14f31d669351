// Package plugins holds the scheduler's plugins: one file for each, and the ordered list in plugins.go.
//
// Names, messages and scores are upstream's, so that people and tools recognize them; what is new is that every
// rejection also says what would make the pod fit. The scheduler's engine calls plugins through the interfaces of package
// plugin. A plugin may import plugin, the Kubernetes API types and component-helpers, never a client, an informer or a
// clock.
//
// Promises: pure, deterministic, no locks, nothing kept between pods except inside a Survey.
//
// The zero value of a plugin works as upstream's default; package profile makes one with the args of a configuration. The args are
// the types of k8s.io/kube-scheduler, complete and valid.
//
// To add a plugin: one file that implements at least one extension point, and one line in All. Tested by one table for
// each plugin, and all together by the generated worlds in package scheduler.
package plugins
