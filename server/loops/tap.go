package loops

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
)

// Tap is a transport that accounts accepted writes to the loop that made them, and adds each write to the actions.
type Tap struct {
	Next http.RoundTripper
	// Actions take the writes; nil keeps none.
	Actions *actions.Log
}

// RoundTrip implements http.RoundTripper.
func (t Tap) RoundTrip(r *http.Request) (*http.Response, error) {
	pass, ok := reconcile.PassFrom(r.Context())
	if !ok || r.Method == http.MethodGet {
		return t.Next.RoundTrip(r)
	}
	begun := time.Now()
	response, err := t.Next.RoundTrip(r)
	body := sent(r)
	object := written(r, body)
	if err == nil && response.StatusCode/100 == 2 {
		pass.Wrote(object, said(r.Method, r.Header.Get("Content-Type"), body))
	}
	line := action(r, pass, begun, object, response, err)
	pass.Did(line)
	t.Actions.Add(line)
	return response, err
}

// sent is what the request said; nothing if it cannot be read again.
func sent(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	again, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer again.Close()
	body, err := io.ReadAll(again) // it is in memory: client-go has encoded it
	if err != nil {
		return nil
	}
	return body
}

// written names the object of a write, as in "deployments/status default/web"; empty for one whose name the server chooses.
func written(r *http.Request, body []byte) string {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	version := 2 // api/v1
	if segments[0] == "apis" {
		version = 3 // apis/group/version
	}
	if len(segments) <= version {
		return ""
	}
	segments = segments[version:]
	namespace := ""
	if segments[0] == "namespaces" && len(segments) > 2 && !ofNamespace[segments[2]] {
		namespace, segments = segments[1]+"/", segments[2:]
	}
	kind, name := segments[0], ""
	switch {
	case len(segments) > 1:
		name = segments[1]
	case r.Method == http.MethodPost:
		name = nameIn(body)
	}
	if name == "" {
		return ""
	}
	if len(segments) > 2 {
		kind += "/" + segments[2]
	}
	return kind + " " + namespace + name
}

// ofNamespace are the subresources of namespaces, which stand where a kind of something in a namespace would.
var ofNamespace = map[string]bool{"status": true, "finalize": true}
