package zpages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/component-base/compatibility"
)

// component is upstream's name of the API server in these pages.
const component = "apiserver"

// handlers are those of pages, by path. They take what upstream installs.
type handlers map[string]http.Handler

// Handle adds one.
func (h handlers) Handle(path string, handler http.Handler) { h[path] = handler }

// Handlers returns the pages by path: of the Kubernetes version that is served, with these flags and a list of these paths. Without flags,
// as in a program that imports the server, there is no page of them.
func Handlers(kubernetes string, flags map[string]string, paths []string) (map[string]http.Handler, error) {
	served, err := version.ParseSemantic(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", kubernetes, err)
	}
	pages := handlers{}
	if flags != nil {
		flagz.Install(pages, component, given(flags))
	}
	effective := compatibility.NewEffectiveVersionFromString(served.String(), "", "")
	all := slices.Concat(paths, slices.Collect(maps.Keys(pages)), []string{statusz.DefaultStatuszPath})
	statusz.Install(pages, component, statusz.NewRegistry(effective, statusz.WithListedPaths(all)))
	return pages, nil
}

// given are flags as upstream reads them.
type given map[string]string

// GetFlagz implements flagz.Reader.
func (g given) GetFlagz() map[string]string { return g }
