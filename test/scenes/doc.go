// Package scenes shows what the control loops do for people: a whole control plane in this process, simulated nodes, and what
// somebody sees with a client while things go wrong.
//
// It owns the scenes, one file each, named after what they show. `make test` runs them; they call the front door (setpoint.Start,
// or package setpointtest where virtual time shows when things happen) and client-go only, and wait for what they want to see,
// never for a time.
//
// A court of test/judges hears every version of every object that a scene stores: none misleads a tool that waits for it.
//
// What they promise stands in the issue trackers of others: a Deployment heals itself, a rollout that cannot go on says so and can be
// taken back, a drain respects budgets, an autoscaler follows the load up and down, the pods of a node that dies come back elsewhere, and
// loops that were away find their way.
package scenes
