// Package wait sleeps for a duration or until a context ends.
//
// It owns nothing. It calls the standard library only. Tested in a synctest bubble.
package wait
