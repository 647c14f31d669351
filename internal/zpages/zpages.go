package zpages

import (
	"net/http"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/statusz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/version"
)

// Classified is the annotation of a flag whose value nobody may see, upstream's name. Flags here take files of secrets, and no secrets.
const Classified = "classified"

// Mux takes the pages.
type Mux = interface {
	Handle(path string, handler http.Handler)
}

// Page mounts both pages on mux; paths are what else is served there.
type Page func(mux Mux, paths []string)

// Handlers is a Mux that keeps them by path.
type Handlers map[string]http.Handler

// Handle implements Mux.
func (h Handlers) Handle(path string, handler http.Handler) { h[path] = handler }

// Of is the pages of a component, upstream's name of it, that was started with flags. Without any, as in a program that imports it, there
// is no page of them.
func Of(component string, flags *pflag.FlagSet) Page {
	return func(mux Mux, paths []string) {
		paths = append(slices.Clone(paths), statusz.DefaultStatuszPath)
		if flags != nil {
			all := cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{component: flags}}
			flagz.Install(mux, component, flagz.NamedFlagSetsReader{FlagSets: all})
			paths = append(paths, flagz.DefaultFlagzPath)
		}
		kubernetes := compatibility.NewEffectiveVersionFromString(version.DefaultKubeBinaryVersion, "", "")
		statusz.Install(mux, component, statusz.NewRegistry(kubernetes, statusz.WithListedPaths(paths)))
	}
}
