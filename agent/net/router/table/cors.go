package table

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// CORS says which pages of other origins may ask, by the Fetch standard. "*" in a list is everything.
type CORS struct {
	Origins, Methods, Headers, Expose []string
	Credentials                       bool
	// MaxAge is for how many seconds a browser may remember the answer.
	MaxAge int
}

// Preflight tells whether a request is the question of a browser whether it may ask.
func Preflight(req *http.Request) bool {
	return req.Method == http.MethodOptions && req.Header.Get("Origin") != "" && req.Header.Get("Access-Control-Request-Method") != ""
}

// Permit adds what a browser must know to an answer. It removes what the backend says of it: the rule is the route's.
func (c *CORS) Permit(req *http.Request, answer http.Header) {
	for name := range answer {
		if strings.HasPrefix(name, "Access-Control-") {
			answer.Del(name)
		}
	}
	origin := req.Header.Get("Origin")
	if origin == "" || !c.allows(origin) {
		return
	}
	if c.Credentials {
		answer.Set("Access-Control-Allow-Credentials", "true")
	} else if slices.Contains(c.Origins, "*") {
		origin = "*"
	}
	answer.Set("Access-Control-Allow-Origin", origin)
	if origin != "*" {
		answer.Add("Vary", "Origin")
	}
	c.set(answer, "Access-Control-Expose-Headers", c.Expose, "")
	if !Preflight(req) {
		return
	}
	c.set(answer, "Access-Control-Allow-Methods", c.Methods, req.Header.Get("Access-Control-Request-Method"))
	c.set(answer, "Access-Control-Allow-Headers", c.Headers, req.Header.Get("Access-Control-Request-Headers"))
	if c.MaxAge > 0 {
		answer.Set("Access-Control-Max-Age", strconv.Itoa(c.MaxAge))
	}
}

// set names what is allowed. With credentials "*" is no wildcard, so what was asked for is named in its place.
func (c *CORS) set(answer http.Header, name string, allowed []string, asked string) {
	value := strings.Join(allowed, ", ")
	if slices.Contains(allowed, "*") {
		value = "*"
		if c.Credentials {
			value = asked
		}
	}
	if value != "" {
		answer.Set(name, value)
	}
}

// allows knows origins such as "https://*.example.com" too.
func (c *CORS) allows(origin string) bool {
	return slices.ContainsFunc(c.Origins, func(allowed string) bool {
		before, after, wild := strings.Cut(allowed, "*")
		if !wild {
			return strings.EqualFold(allowed, origin)
		}
		return len(origin) > len(before)+len(after) && strings.HasPrefix(origin, before) && strings.HasSuffix(origin, after) || allowed == "*"
	})
}
