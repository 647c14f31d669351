// Package views counts the placed pods in the ways in which plugins ask for them, and keeps the counts up as pods come and go.
//
// It owns the Views of one scheduler cache. A Query selects pods by namespace and labels. A Region divides nodes into domains by
// a node label. A Tally says how many of the pods that a Query selects are in each domain of a Region. All classes of pods that
// ask the same question share one Tally, and a pod that is placed or removed changes only the tallies that count it: they are
// found by the pod's labels. So the cost of a placement follows what changed, not the number of pods, nodes or classes.
// The terms of placed pods about other pods (their affinity and anti-affinity) are counted the same way, by Bearer, and found by
// the labels of the pod that they may be about.
//
// The scheduler's cache tells what is where; the surveys of the plugins InterPodAffinity, PodTopologySpread and VolumeRestrictions
// ask. A survey that is no longer used releases its tallies, and a tally that nobody uses is forgotten.
//
// Promises: at any time a count is what a fresh count over all placed pods would give. Everything is guarded by the scheduler's
// lock; nothing here does I/O or keeps time. It may import the Kubernetes API types only.
//
// Tested by generated worlds: after each change every count is compared with a fresh one.
package views
