package registries

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

const (
	hostsFile = "hosts.toml"
	// anyFolder is for registries without a folder of their own.
	anyFolder = "_default"
)

// hostsTOML is containerd's file about one registry. The fields beside hosts are about the registry itself.
type hostsTOML struct {
	Server string `toml:"server"`
	hostTOML
	Hosts map[string]hostTOML `toml:"host"`
}

type hostTOML struct {
	Capabilities []string       `toml:"capabilities"`
	CA           any            `toml:"ca"`
	Client       any            `toml:"client"`
	SkipVerify   bool           `toml:"skip_verify"`
	OverridePath bool           `toml:"override_path"`
	Header       map[string]any `toml:"header"`
}

// fromFolder reads the file of a registry anew for each pull, as containerd.
func fromFolder(dir, registry string) ([]Endpoint, error) {
	for _, folder := range []string{registry, strings.Replace(registry, ":", "_", 1) + "_", anyFolder} {
		path := filepath.Join(dir, folder, hostsFile)
		text, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var all []Endpoint
		if err == nil {
			all, err = fromTOML(string(text), filepath.Dir(path), registry)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return all, nil
	}
	return Config{}.Endpoints(registry)
}

func fromTOML(text, dir, registry string) (all []Endpoint, err error) {
	var file hostsTOML
	meta, err := toml.Decode(text, &file)
	if err != nil {
		return nil, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: %w", unknown[0], errUnknown)
	}
	for _, key := range meta.Keys() { // in the order of the file
		if len(key) != 2 || key[0] != "host" {
			continue
		}
		made, err := file.Hosts[key[1]].endpoint(key[1], dir, registry)
		if err != nil {
			return nil, fmt.Errorf("host %q: %w", withoutUser(key[1]), err)
		}
		if made != nil {
			all = append(all, *made)
		}
	}
	if hasOwn(all) {
		return all, nil
	}
	own, err := ownPlace(registry)
	if err != nil {
		return nil, err
	}
	server := own.url.Scheme + "://" + own.url.Host
	if file.Server != "" {
		server = file.Server
	}
	made, err := file.hostTOML.endpoint(server, dir, registry)
	if err != nil || made == nil {
		return all, err
	}
	made.Own = true
	return append(all, *made), nil
}

// endpoint is nil for a host that nothing is pulled from.
func (h hostTOML) endpoint(text, dir, registry string) (*Endpoint, error) {
	at, err := parsePlace(text, h.OverridePath)
	if err != nil {
		return nil, err
	}
	at.tls.skipVerify = h.SkipVerify
	if at.tls.authorities, err = texts("ca", h.CA); err != nil {
		return nil, err
	}
	if at.tls.pairs, err = pairs(h.Client); err != nil {
		return nil, err
	}
	if at.headers, err = headers(h.Header); err != nil {
		return nil, err
	}
	at.tls.within(dir)
	can := h.Capabilities
	if len(can) == 0 {
		can = []string{"pull", "resolve", "push"}
	}
	if !slices.Contains(can, "pull") {
		return nil, nil
	}
	made, err := endpoint(at, registry, nil)
	made.DigestsOnly = !slices.Contains(can, "resolve")
	return &made, err
}

// within makes names of files those below the folder, unless they are absolute.
func (f *tlsFiles) within(dir string) {
	absolute := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	for i, name := range f.authorities {
		f.authorities[i] = absolute(name)
	}
	for i, pair := range f.pairs {
		f.pairs[i] = [2]string{absolute(pair[0]), absolute(pair[1])}
	}
}

// texts are a text or a list of some.
func texts(field string, value any) (all []string, err error) {
	switch v := value.(type) {
	case nil:
	case string:
		return []string{v}, nil
	case []any:
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("%s: want a text or a list of texts", field)
			}
			all = append(all, text)
		}
	default:
		return nil, fmt.Errorf("%s: want a text or a list of texts", field)
	}
	return all, nil
}

// pairs are a file with both, a list of such, or a list of pairs.
func pairs(value any) (all [][2]string, err error) {
	list, ok := value.([]any)
	if !ok {
		list = nil
		if value != nil {
			list = []any{value}
		}
	}
	for _, one := range list {
		names, err := texts("client", one)
		if err != nil || len(names) < 1 || len(names) > 2 {
			return nil, errors.New("client: want a file, a list of files, or a list of [certificate, key]")
		}
		all = append(all, [2]string{names[0], append(names, "")[1]})
	}
	return all, nil
}

func headers(value map[string]any) (http.Header, error) {
	all := http.Header{}
	for name, one := range value {
		list, err := texts("header", one)
		if err != nil {
			return nil, err
		}
		all[http.CanonicalHeaderKey(name)] = list
	}
	return all, nil
}
