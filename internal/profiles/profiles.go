package profiles

import (
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

// Path is where they are.
const Path = "/debug/pprof"

// Handlers are those of all profiles and of their index, by path.
func Handlers() map[string]http.Handler {
	all := map[string]http.Handler{
		Path:              http.HandlerFunc(index),
		Path + "/cmdline": http.HandlerFunc(pprof.Cmdline),
		Path + "/profile": http.HandlerFunc(pprof.Profile),
		Path + "/symbol":  http.HandlerFunc(pprof.Symbol),
		Path + "/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, p := range runtimepprof.Profiles() {
		all[Path+"/"+p.Name()] = pprof.Handler(p.Name())
	}
	return all
}

// index lists them. Its links need the path to end with a slash.
func index(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == Path {
		http.Redirect(w, r, Path+"/", http.StatusMovedPermanently)
		return
	}
	pprof.Index(w, r)
}
