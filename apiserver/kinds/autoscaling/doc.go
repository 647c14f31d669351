// Package autoscaling has the HorizontalPodAutoscaler in its versions v2, which is
// stored, and v1, which knows the utilization of CPUs only and keeps all else in
// annotations.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata; the generic test of the parent converts both ways.
package autoscaling
