package past

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrReadOnly is what a request gets that does not read objects.
var ErrReadOnly = errors.New("the past can only be read: there are get and describe, without --watch, and no logs")

// Exactly has a client read objects as they were at a revision; what servers say about their API is that of now. It refuses whatever else
// is asked with ErrReadOnly, and sends none of it.
func Exactly(revision uint64) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return exactly{revision, next} }
}

type exactly struct {
	revision uint64
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e exactly) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := askedOf(r.URL.Path)
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet, asked == other, isTrue(query, "watch"), isTrue(query, "follow"):
		if r.Body != nil {
			_ = r.Body.Close() // it was not read
		}
		return nil, ErrReadOnly
	case asked == about, query.Has("continue"): // the token of a page has its revision
		return e.next.RoundTrip(r)
	}
	query.Set("resourceVersion", strconv.FormatUint(e.revision, 10))
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return e.next.RoundTrip(r)
}

// isTrue is how servers read a parameter.
func isTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "false" && value != "0"
}

// asked is what a path leads to.
type asked int

const (
	other asked = iota
	about
	objects
)

// askedOf tells paths of objects and of lists from those about the API, and both from subresources and the rest.
func askedOf(path string) asked {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	switch {
	case len(parts) == 0:
		return other
	case parts[0] == "api":
		parts = parts[1:]
	case parts[0] == "apis":
		parts = parts[min(2, len(parts)):]
	case slices.Contains([]string{"openapi", "version"}, parts[0]):
		return about
	default:
		return other
	}
	if len(parts) < 2 {
		return about
	}
	parts = parts[1:] // the version
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 || slices.Contains([]string{"status", "finalize"}, parts[0]) {
		return other
	}
	return objects
}
