// Package events records what the agent does with pods as Kubernetes events.
//
// It owns: the reasons (upstream's words, which tools and tests match) and the
// references that point an event at one container. It may call: client-go's
// recorder.
//
// Promises: the recorder aggregates and rate limits as upstream's does; it never
// blocks its caller. Tested by the packages that emit events.
package events
