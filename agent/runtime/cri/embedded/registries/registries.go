package registries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// dockerHub is called so in configurations; its API is elsewhere.
const dockerHub = "docker.io"

// Config is what the administrator has written; the zero value: nothing.
type Config struct{ path string }

// Open checks that all that is there can be read, and the files that it names. "" is the zero Config.
func Open(path string) (Config, error) {
	c := Config{path}
	if path == "" {
		return c, nil
	}
	names, err := c.registries()
	if err != nil {
		return Config{}, err
	}
	for _, registry := range names {
		if _, err := c.Endpoints(registry); err != nil {
			return Config{}, err
		}
	}
	return c, nil
}

// registries are those that are named.
func (c Config) registries() (all []string, err error) {
	info, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return foldersOf(c.path)
	}
	file, err := readYAML(c.path)
	if err != nil {
		return nil, err
	}
	for registry := range file.Mirrors {
		all = append(all, registry)
	}
	for host := range file.Configs {
		all = append(all, host)
	}
	return all, nil
}

// Endpoints are where images of a registry are asked for, one after the other: the registry itself comes last.
func (c Config) Endpoints(registry string) ([]Endpoint, error) {
	if registry == "index."+dockerHub {
		registry = dockerHub
	}
	if c.path == "" {
		return []Endpoint{{Transport: remote.DefaultTransport, Own: true, text: registry}}, nil
	}
	info, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return fromFolder(c.path, registry)
	}
	file, err := readYAML(c.path)
	if err != nil {
		return nil, err
	}
	endpoints, err := file.endpoints(registry)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return endpoints, nil
}

// hostOf is where requests for a registry go without a configuration.
func hostOf(registry string) string {
	if registry == dockerHub {
		return name.DefaultRegistry
	}
	return registry
}

// endpoint is a place with what else is said of it.
func endpoint(p place, registry string, auth *authn.AuthConfig) (Endpoint, error) {
	transport, err := p.transport(hostOf(registry), registry)
	if err != nil {
		return Endpoint{}, err
	}
	return Endpoint{Transport: transport, Auth: auth, Own: p.url.Host == hostOf(registry), text: p.url.String()}, nil
}

// ownPlace is the registry itself.
func ownPlace(registry string) (place, error) {
	parsed, err := name.NewRegistry(hostOf(registry))
	if err != nil {
		return place{}, err
	}
	return parsePlace(parsed.Scheme()+"://"+parsed.RegistryStr(), false)
}

// foldersOf are the registries with a hosts.toml, and anyFolder if it has one.
func foldersOf(dir string) (all []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		_, missing := os.Stat(filepath.Join(dir, entry.Name(), hostsFile))
		if missing == nil {
			all = append(all, registryOf(entry.Name()))
		}
	}
	return all, err
}

// registryOf undoes what is done to names that may have no colon: registry_5000_.
func registryOf(folder string) string {
	if i := strings.LastIndexByte(folder[:max(len(folder)-1, 0)], '_'); i > 0 && strings.HasSuffix(folder, "_") {
		return folder[:i] + ":" + folder[i+1:len(folder)-1]
	}
	return folder
}

// hasOwn reports whether the registry itself is among them.
func hasOwn(all []Endpoint) bool {
	return slices.ContainsFunc(all, func(e Endpoint) bool { return e.Own })
}

var errUnknown = errors.New("not supported")
