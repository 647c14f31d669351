package credentials

import (
	"errors"
	"net/url"
	"path"
	"strings"
)

// place is where an image is, or a pattern of such places: *.example.com:5000/team.
type place struct {
	host       []string
	port, path string
}

var errPlace = errors.New("want a registry's name, with * for parts of it, and perhaps a port and a path")

func split(text string) (place, error) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://")
	u, err := url.Parse("https://" + text)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return place{}, errPlace
	}
	if _, err := path.Match(u.Hostname(), ""); err != nil {
		return place{}, errPlace
	}
	return place{strings.Split(u.Hostname(), "."), u.Port(), u.Path}, nil
}

// matches: as many parts, each as the pattern's; the same port; and a path that begins with the pattern's. As upstream's
// pkg/credentialprovider URLsMatch.
func matches(pattern, image string) bool {
	p, err := split(pattern)
	if err != nil {
		return false
	}
	i, err := split(image)
	if err != nil || p.port != i.port || len(p.host) != len(i.host) || !strings.HasPrefix(i.path, p.path) {
		return false
	}
	for n, part := range p.host {
		if ok, err := path.Match(part, i.host[n]); err != nil || !ok {
			return false
		}
	}
	return true
}
