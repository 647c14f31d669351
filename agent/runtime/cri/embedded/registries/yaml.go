package registries

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"sigs.k8s.io/yaml"
)

// anyRegistry is the name of mirrors of all registries that have none of their own.
const anyRegistry = "*"

// registriesYAML is k3s's file.
type registriesYAML struct {
	Mirrors map[string]struct {
		Endpoint []string          `json:"endpoint"`
		Rewrite  map[string]string `json:"rewrite"`
	} `json:"mirrors"`
	Configs map[string]hostYAML `json:"configs"`
}

// hostYAML is about one host, whether a mirror or a registry.
type hostYAML struct {
	Auth *struct {
		Username      string `json:"username"`
		Password      string `json:"password"`
		Auth          string `json:"auth"`
		IdentityToken string `json:"identity_token"`
	} `json:"auth"`
	TLS *struct {
		CAFile             string `json:"ca_file"`
		CertFile           string `json:"cert_file"`
		KeyFile            string `json:"key_file"`
		InsecureSkipVerify bool   `json:"insecure_skip_verify"`
	} `json:"tls"`
}

func readYAML(path string) (*registriesYAML, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	file := &registriesYAML{}
	if err := yaml.UnmarshalStrict(text, file); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	return file, nil
}

func (f *registriesYAML) endpoints(registry string) (all []Endpoint, err error) {
	mirrors, ok := f.Mirrors[registry]
	if !ok {
		mirrors = f.Mirrors[anyRegistry]
	}
	rewrites, err := rewritesOf(mirrors.Rewrite)
	if err != nil {
		return nil, fmt.Errorf("mirrors: %s: %w", registry, err)
	}
	for _, text := range mirrors.Endpoint {
		_, rest, _ := strings.Cut(text, "://")
		at, err := parsePlace(text, strings.Contains(strings.TrimSuffix(rest, "/"), "/")) // as k3s: a path is the whole of it
		if err != nil {
			return nil, fmt.Errorf("mirrors: %s: endpoint %q: %w", registry, withoutUser(text), err)
		}
		made, err := f.at(at, registry)
		if err != nil {
			return nil, err
		}
		if !made.Own {
			made.rewrites = rewrites
		}
		all = append(all, made)
	}
	if registry == anyRegistry || hasOwn(all) {
		return all, nil
	}
	own, err := ownPlace(registry)
	if err != nil {
		return nil, err
	}
	made, err := f.at(own, registry)
	return append(all, made), err
}

// at adds what is said of a host.
func (f *registriesYAML) at(p place, registry string) (Endpoint, error) {
	host, ok := f.Configs[p.url.Host]
	if !ok && p.url.Host == hostOf(registry) {
		host = f.Configs[registry]
	}
	if host.TLS != nil {
		p.tls.skipVerify = host.TLS.InsecureSkipVerify
		if host.TLS.CAFile != "" {
			p.tls.authorities = []string{host.TLS.CAFile}
		}
		if host.TLS.CertFile != "" {
			p.tls.pairs = [][2]string{{host.TLS.CertFile, host.TLS.KeyFile}}
		}
	}
	var auth *authn.AuthConfig
	if a := host.Auth; a != nil {
		auth = &authn.AuthConfig{Username: a.Username, Password: a.Password, Auth: a.Auth, IdentityToken: a.IdentityToken}
	}
	made, err := endpoint(p, registry, auth)
	if err != nil {
		return made, fmt.Errorf("configs: %s: %w", p.url.Host, err)
	}
	return made, nil
}

func rewritesOf(texts map[string]string) (all []rewrite, err error) {
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		from, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("rewrite: %w", err)
		}
		all = append(all, rewrite{from, texts[text]})
	}
	return all, nil
}
