// Package volumestats keeps how full the volumes of claims are that pods of this node have.
//
// It owns: the latest measurement of each, taken every minute (volumeStatsAggPeriod). What it knows is told in /stats/summary and
// /metrics. It may call: what measures a volume (agent/volumes), and the API for the volume of a claim, once for each pod.
//
// Promises: Of never waits. Each volume is measured by a goroutine of its own, and not again before the last time has ended: a driver or a
// file system that hangs keeps its own volume's measurement old, and nothing else. What cannot be measured is not told, as with a kubelet.
//
// Tested in a synctest bubble.
package volumestats
