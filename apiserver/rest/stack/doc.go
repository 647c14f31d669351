// Package stack grows the stack of a goroutine once, before it serves a request, instead of step by step
// meanwhile.
//
// apiserver calls it where a request begins, apiserver/rest where upstream's handlers
// begin a goroutine of their own. It owns nothing and imports nothing of ours.
package stack
