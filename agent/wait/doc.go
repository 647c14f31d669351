// Package wait sleeps for a duration or until a context ends.
//
// It owns nothing. Called by whatever in the agent tries again or looks from time to
// time; it calls the standard library only. Tested in a synctest bubble.
package wait
