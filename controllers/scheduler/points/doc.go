// Package points tells how long the scheduler's extension points take, as upstream's scheduler does.
//
// The scheduler runs most of them one after the other while it decides on a pod, and times them by Laps; those that run beside it, while
// a pod is bound, it tells with Took. Both write to a histogram of package numbers, by upstream's names of points and statuses.
//
// It calls nothing of this project. Tested by the scheduler's test of its numbers.
package points
