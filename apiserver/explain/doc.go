// Package explain says why an object is not what its owner wants: why a pod waits, what holds a rollout, a Job, a claim, a
// deletion or an eviction, and which change would end it.
//
// It owns the answers of `setpoint why`. server/why calls Explain with a World, which reads one server's objects, and
// Visible with what the caller may read. It calls apiserver/rest/disruption for what a budget says of an eviction.
//
// It decides nothing a second time: whether a pod fits on a node is the Judgement of the scheduler's plugins; why pods are not
// made is the refusal that the API gave the loop, as its condition, its event or its failing key has it; why a namespace stays are
// the conditions of the loop that empties it. What it adds is the way from one object to the next, the objects that were looked
// at and hold nothing, and a command for the change, where there is one.
//
// Promises: it is pure, reads at most what a World hands it, changes no object, and names at most causesMax causes of
// one object, which says how many there are more.
//
// Tested with a scene for each cause, each with other objects beside it that are innocent.
package explain
