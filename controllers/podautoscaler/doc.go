// Package podautoscaler keeps HorizontalPodAutoscalers: it measures the load of the pods behind a scale
// subresource and writes how many there should be.
//
// It reads HorizontalPodAutoscalers and Pods from caches, and the target's Scale and the metrics (metrics.k8s.io,
// custom.metrics.k8s.io, external.metrics.k8s.io) with requests, every 15 seconds for each autoscaler. It owns
// spec.replicas of the Scales that autoscalers name, and the status of HorizontalPodAutoscalers. A status that
// is right is not written again.
//
// A pass observes, plans (plan.go, a pure function of what was observed, what was recommended before, and the
// time) and acts. The arithmetic is upstream's (1.37), but it saturates: a metric too large for its integer asks
// for as many pods as are allowed, never for fewer.
//
// What was recommended and done, as far as the windows look back, is kept in memory for one term of the leader, as upstream does:
// after a change of leaders the stabilization begins with the current number of replicas.
//
// It is tested by tables of the plan, by generated worlds, in bubbles with a fake source of metrics, and by a script
// (cmd/setpoint, metrics.txtar) with the metrics API that is built in.
package podautoscaler
