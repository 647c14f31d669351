// Package differential runs upstream's own controllers and ours on the same generated worlds and
// compares the states that they reach.
//
// A world is a namespace with one workload and a list of steps: its user changes the spec, its
// nodes start, finish, fail and delete pods, time passes. The list is made from a seed, without a
// look at the state, so both sides get the same. Each side runs in a bubble of fake time over
// reconciletest.World; after each step, when all is quiet, the state is written down without
// names and times, and the texts of both sides are compared.
//
// Watchers see more than settled states. So each status that was published on the way is judged too, in the same worlds: it is one
// that upstream published in that step, with counts between those that upstream showed, about the same generation (published_test.go).
// A status on the way is what a pass saw, which is chance, so one world of a hundred may have another. A Deployment sums what its
// ReplicaSets tell one after the other; its counts may not look more finished than upstream's ever did in the step.
//
// HorizontalPodAutoscalers read scales and metrics by requests. Both sides send theirs, by the clients of upstream's libraries, to an API
// that the steps fill (autoscaler_api_test.go): use, samples that are missing or old, APIs that are broken or empty, refused scales.
//
// The scheduler's plugins are asked otherwise (KIND=scheduler): both sides judge the same pods on the same nodes, once; and
// so is preemption (KIND=preemption): whom it would evict on each node, and which node it may choose.
//
// Upstream's code (k8s.io/kubernetes) is a library of this module's tests only, which is why the
// module is one of its own. `make differential WORLDS=N SEED=S KIND=K RUNS=R` runs it. A world is compared up to the
// first step after which the sides differ. Upstream goes through maps, so it may do one or the other: it plays a world
// that differs up to R times, and once is enough. Where the sides differ on purpose, the workload's excuse says why,
// and the excused worlds are counted. Worlds that showed a fault of ours are played in every run (TestFoundWorlds).
package differential
