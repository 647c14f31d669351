package kubeletapi

import (
	"net/http"
	"strings"
)

// Mux takes handlers.
type Mux = interface {
	Handle(path string, handler http.Handler)
}

// routes is a mux that knows what it was given.
type routes struct {
	*http.ServeMux
	patterns []string
}

func (r *routes) Handle(pattern string, handler http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, handler)
}

func (r *routes) HandleFunc(pattern string, handler http.HandlerFunc) { r.Handle(pattern, handler) }

// paths are those that users may ask for.
func (r *routes) paths() (list []string) {
	for _, pattern := range r.patterns {
		path := pattern[strings.Index(pattern, "/"):] // without the method
		if !ServersOnly(path) && !NodesToo(path) {
			list = append(list, path)
		}
	}
	return list
}

// onlyRead mounts pages for GET.
type onlyRead struct{ mux Mux }

func (o onlyRead) Handle(path string, handler http.Handler) { o.mux.Handle("GET "+path, handler) }

func (s *server) pages(mux *routes) {
	if s.Pages != nil {
		s.Pages(onlyRead{mux}, mux.paths())
	}
}
