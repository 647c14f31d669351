package server

import (
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

const profilesPath = "/debug/pprof"

// profiles are Go's profiles of this process at upstream's paths, for who may get /debug/pprof/*. Those that take time end with their
// request, which has a deadline.
func profiles() map[string]http.Handler {
	all := map[string]http.Handler{
		profilesPath:              http.HandlerFunc(profileIndex),
		profilesPath + "/cmdline": http.HandlerFunc(pprof.Cmdline),
		profilesPath + "/profile": http.HandlerFunc(pprof.Profile),
		profilesPath + "/symbol":  http.HandlerFunc(pprof.Symbol),
		profilesPath + "/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, p := range runtimepprof.Profiles() {
		all[profilesPath+"/"+p.Name()] = pprof.Handler(p.Name())
	}
	return all
}

// profileIndex lists them. Its links need the path to end with a slash.
func profileIndex(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == profilesPath {
		http.Redirect(w, r, profilesPath+"/", http.StatusMovedPermanently)
		return
	}
	pprof.Index(w, r)
}
