// Package pause waits for a while, or until it is no longer wanted.
//
// It owns nothing. Called by whatever in the agent tries again or looks from time to
// time; it calls the standard library only. Tested in a synctest bubble.
package pause
