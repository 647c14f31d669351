package ui

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/server/admin"
)

// reads are the verbs that pass: no object is changed through the page, so none can be made to be changed by whoever gets in.
var reads = []string{"get", "list", "watch"}

// mayBeAsked judges what is asked of a server; r's path is the server's. Reads of objects and of what there is pass, logs, and the
// questions of server/admin.
func mayBeAsked(r *http.Request) refusal {
	if method, ok := admin.Questions()[r.URL.Path]; ok {
		if r.Method != method {
			return refusal{http.StatusMethodNotAllowed, "want " + method}
		}
		return refusal{}
	}
	if r.Method != http.MethodGet {
		return refusal{http.StatusMethodNotAllowed, "this page only reads: change things with 'setpoint kubectl'"}
	}
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		return refusal{http.StatusBadRequest, err.Error()}
	}
	switch {
	case !info.IsResourceRequest:
		return mayBeRead(info.Path)
	case info.Resource == "secrets":
		return refusal{http.StatusForbidden, "Secrets are not for a page: use 'setpoint kubectl get secret'"}
	case !slices.Contains(reads, info.Verb), info.Subresource != "" && (info.Resource != "pods" || info.Subresource != "log"):
		return refusal{http.StatusForbidden, "this page only reads objects and logs: use 'setpoint kubectl'"}
	}
	return refusal{}
}

// mayBeRead judges paths of no object: those that say what kinds there are.
func mayBeRead(path string) refusal {
	path = strings.TrimSuffix(path, "/")
	if path == "/version" || path == "/api" || path == "/apis" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/") {
		return refusal{}
	}
	return refusal{http.StatusNotFound, "there is nothing here for a page"}
}
