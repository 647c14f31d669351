// Package sampled tells of some of what strangers do, and counts the rest.
//
// It owns the Sampler: whoever logs or keeps something for each request that anybody can make asks it before. Servers ask it for
// writes of nobody that are refused, machines that may not join, connections that are no server's, and failed checks of health; an
// agent for clients that cannot be looked up. It calls nothing of this project.
//
// Promises: one source is told of once in Interval, with how much was left out before; SourcesMax sources are told apart, and those
// beyond share a place. All methods may be called from any goroutine.
//
// Tested with made-up times.
package sampled
