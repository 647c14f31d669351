package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// TestTheFirstServerThatIsReady: a current server that is there is used though others are quicker, and one whose machine is off costs
// each call a moment, not its timeout.
func TestTheFirstServerThatIsReady(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		after map[string]time.Duration // until it answers; negative: that it is not ready
		// refusing are those that refuse the user.
		refusing, want string
		took           time.Duration
	}{
		"the current one":                {map[string]time.Duration{"a": 50 * ms, "b": ms, "c": ms}, "", "a", 50 * ms},
		"its machine is off":             {map[string]time.Duration{"a": -answerTimeout, "b": 9 * ms, "c": 4 * ms}, "", "c", headStart + 4*ms},
		"it is not ready":                {map[string]time.Duration{"a": -ms, "b": 3 * ms, "c": 4 * ms}, "", "b", 4 * ms},
		"only the current, late":         {map[string]time.Duration{"a": 900 * ms, "b": -ms, "c": -ms}, "", "a", 900 * ms},
		"it starts, the user is refused": {map[string]time.Duration{"a": ms, "b": 3 * ms, "c": 9 * ms}, "ab", "c", 10 * ms},
		"another one starts":             {map[string]time.Duration{"a": -ms, "b": 3 * ms, "c": 9 * ms}, "b", "c", 10 * ms},
		"all refuse":                     {map[string]time.Duration{"a": ms, "b": ms, "c": 2 * ms}, "abc", "a", 3 * ms},
		"the current one refuses last":   {map[string]time.Duration{"a": headStart + 9*ms, "b": ms, "c": ms}, "abc", "a", headStart + 9*ms},
		"the others refuse":              {map[string]time.Duration{"a": -ms, "b": 3 * ms, "c": -ms}, "b", "b", 4 * ms},
		"nobody":                         {map[string]time.Duration{"a": -ms, "b": -ms, "c": -answerTimeout}, "", "", answerTimeout + ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				got, _ := firstReady("a", []string{"b", "c"}, func(name string) (*rest.Config, bool) {
					if after := c.after[name]; after > 0 {
						time.Sleep(after)
						return &rest.Config{}, strings.Contains(c.refusing, name)
					}
					time.Sleep(-c.after[name])
					return nil, false
				})
				if took := time.Since(begun); got != c.want || took != c.took {
					t.Errorf("%q after %v, want %q after %v", got, took, c.want, c.took)
				}
				time.Sleep(answerTimeout) // nobody is asked any more
			})
		})
	}
}
