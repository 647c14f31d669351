package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"path"
	"strings"
	"time"
)

// A refusal is a status and a sentence; the zero value lets pass.
type refusal struct {
	code int
	text string
}

// say answers with the refusal and ends the connection: whoever is refused holds none, however long the rest of his request may be.
func (no refusal) say(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a writer of a test has none
	w.Header().Set("Connection", "close")
	http.Error(w, no.text, no.code)
}

// bodyBytesMax bounds the body of a question.
const bodyBytesMax = 64 << 10

// comesIn judges who asks, before anything is looked at that he asks for. A page of another origin cannot read the secret; the other
// checks hold when it has it all the same, from a screenshot or a history.
func comesIn(r *http.Request, secret string) refusal {
	given, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case !isLoopback(r.Host): // a name of somebody else's that leads here (DNS rebinding)
		return refusal{http.StatusForbidden, "open this page as 127.0.0.1 or localhost"}
	case origin != "" && origin != "http://"+r.Host:
		return refusal{http.StatusForbidden, "other pages may not ask here"}
	case site != "" && site != "same-origin" && site != "none": // none: typed, or opened from outside of the browser
		return refusal{http.StatusForbidden, "links and pages from elsewhere do not lead here: copy the address into the browser"}
	case subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1:
		return refusal{http.StatusNotFound, "open the address that 'setpoint ui' has printed; each start has another one"}
	case r.Header.Get("Upgrade") != "":
		return refusal{http.StatusForbidden, "streams into pods are not for a page: use 'setpoint kubectl exec'"}
	case path.Clean(r.URL.Path) != strings.TrimSuffix(r.URL.Path, "/"): // what is judged is what is sent
		return refusal{http.StatusBadRequest, "want a path without //, . and .."}
	}
	return refusal{}
}

// isLoopback are the hosts that 'kubectl proxy' accepts, but for [::1], where nobody listens.
func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	return host == "127.0.0.1" || host == "localhost"
}
