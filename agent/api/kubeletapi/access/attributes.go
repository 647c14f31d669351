package access

import (
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// verbs by method, as upstream's.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// subresources of nodes by the first part of the path; any of them is enough. Others are nodes/proxy.
var subresources = map[string][]string{
	"stats": {"stats"}, "metrics": {"metrics"}, "logs": {"log"}, "checkpoint": {"checkpoint"},
	"statusz": {"statusz"}, "flagz": {"configz"},
	"pods": {"pods", "proxy"}, "healthz": {"healthz", "proxy"}, "configz": {"configz", "proxy"},
}

// streams are what a GET does more with than reading: WebSocket clients run commands by it. Upstream asks for get there.
var streams = map[string]bool{"exec": true, "attach": true, "portForward": true}

// attributes of a request: one of them must be allowed.
func attributes(node string, r *http.Request) []authorizationv1.ResourceAttributes {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	verb := verbs[r.Method]
	if streams[first] {
		verb = "create"
	}
	names, ok := subresources[first]
	if !ok {
		names = []string{"proxy"}
	}
	var list []authorizationv1.ResourceAttributes
	for _, name := range names {
		list = append(list, authorizationv1.ResourceAttributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: name, Name: node})
	}
	return list
}
