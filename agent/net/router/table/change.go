package table

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Change is what the filters of a route do, which the Gateway API calls so.
type Change struct {
	// Request and Answer are changes of headers, in order.
	Request, Answer []Headers
	// Host, if not empty, is the one that the backend is told.
	Host string
	// Path, if not nil, is the one that the backend gets.
	Path *PathChange
	// Mirrors get a copy of the request; their answers are thrown away.
	Mirrors []Mirror
	// Redirect, if not nil, is where the client is sent.
	Redirect *Redirect
	// CORS, if not nil, says to browsers which pages may ask.
	CORS *CORS
	// Timeout, if not 0, is how long the whole request may take.
	Timeout time.Duration
}

// Headers are changes of headers: some are set, then some are added, then some are removed.
type Headers struct {
	Set, Add [][2]string
	Remove   []string
}

// Apply changes the headers.
func (h *Headers) Apply(to http.Header) {
	for _, pair := range h.Set {
		to.Set(pair[0], pair[1])
	}
	for _, pair := range h.Add {
		to.Add(pair[0], pair[1])
	}
	for _, name := range h.Remove {
		to.Del(name)
	}
}

// PathChange replaces a path, or the prefix of it that was matched.
type PathChange struct {
	// Prefix, unless Whole, is what was matched: "/foo" of "/foo/bar"; "" is the root.
	Prefix string
	Whole  bool
	By     string
}

// Target is the path after the change. It begins with a slash.
func (c *PathChange) Target(p string) string {
	if c.Whole {
		return "/" + strings.TrimPrefix(c.By, "/")
	}
	by, rest := "/"+strings.TrimPrefix(c.By, "/"), strings.TrimPrefix(p, c.Prefix)
	if rest == "" {
		return by
	}
	return strings.TrimSuffix(by, "/") + "/" + strings.TrimPrefix(rest, "/")
}

// Mirror is a backend that gets copies of Numerator out of Denominator requests.
type Mirror struct {
	Backend                *Backend
	Numerator, Denominator int32
}

// Redirect is another address, where what is empty or 0 is as it was asked for.
type Redirect struct {
	Scheme, Host string
	Port         int
	Path         *PathChange
	Code         int
}

// Location is the address to which a request is sent that came to a port.
func (r *Redirect) Location(host string, asked *url.URL, secure bool, port int) string {
	to := url.URL{Scheme: "http", Path: asked.Path, RawPath: asked.RawPath, RawQuery: asked.RawQuery}
	if secure {
		to.Scheme = "https"
	}
	if r.Scheme != "" {
		to.Scheme = r.Scheme
		port = wellKnown[r.Scheme]
	}
	if r.Port != 0 {
		port = r.Port
	}
	if r.Host != "" {
		host = r.Host
	}
	if r.Path != nil {
		to.Path, to.RawPath = r.Path.Target(Clean(asked.Path)), ""
	}
	to.Host = host
	if port != 0 && port != wellKnown[to.Scheme] {
		to.Host = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return to.String()
}

var wellKnown = map[string]int{"http": 80, "https": 443}
