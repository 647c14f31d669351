package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// patternBytesMax bounds one regular expression; Go's take linear time, but memory in proportion.
const patternBytesMax = 512

// match is one of a rule.
type match struct {
	// path is an exact one or a prefix without a slash at its end; pattern, if not nil, is in its place.
	exact   bool
	path    string
	pattern *regexp.Regexp
	// method is empty for any.
	method         string
	headers, query []value
	shares         []share
	total          int
}

// value is one that a header or a parameter must have.
type value struct {
	name, is string
	pattern  *regexp.Regexp
}

func (v *value) fits(has string) bool {
	if v.pattern != nil {
		return v.pattern.MatchString(has)
	}
	return v.is == has
}

// matchesOf are those of a rule; a match that cannot be read is left out, for it would fit others.
func matchesOf(specs []v1.HTTPRouteMatch, shares []share) (made []*match, wrong fault) {
	if len(specs) == 0 {
		specs = []v1.HTTPRouteMatch{{}}
	}
	for i := range specs {
		m, err := matchOf(&specs[i])
		if err != nil {
			wrong = fault{string(v1.RouteReasonUnsupportedValue), err.Error()}
			continue
		}
		for _, s := range shares {
			m.shares = append(m.shares, share{s.weight, ofPrefix(s.route, m.path)})
			m.total += s.weight
		}
		made = append(made, m)
	}
	return made, wrong
}

func matchOf(spec *v1.HTTPRouteMatch) (m *match, err error) {
	m = &match{}
	if spec.Path != nil {
		kind, path := *orZero(spec.Path.Type), *orZero(spec.Path.Value)
		switch kind {
		case v1.PathMatchExact:
			m.exact, m.path = true, path
		case v1.PathMatchRegularExpression:
			if m.pattern, err = expression("^(?:" + path + ")"); err != nil {
				return nil, err
			}
		default:
			m.path = strings.TrimSuffix(path, "/")
		}
	}
	if spec.Method != nil {
		m.method = string(*spec.Method)
	}
	for _, h := range spec.Headers {
		made := value{name: http.CanonicalHeaderKey(string(h.Name)), is: h.Value}
		if h.Type != nil && *h.Type == v1.HeaderMatchRegularExpression {
			if made.pattern, err = expression("^(?:" + h.Value + ")$"); err != nil {
				return nil, err
			}
		}
		m.headers = append(m.headers, made)
	}
	for _, q := range spec.QueryParams {
		made := value{name: string(q.Name), is: q.Value}
		if q.Type != nil && *q.Type == v1.QueryParamMatchRegularExpression {
			if made.pattern, err = expression("^(?:" + q.Value + ")$"); err != nil {
				return nil, err
			}
		}
		m.query = append(m.query, made)
	}
	return m, nil
}

func expression(text string) (*regexp.Regexp, error) {
	if len(text) > patternBytesMax {
		return nil, fmt.Errorf("a regular expression has %d bytes; at most %d are allowed", len(text), patternBytesMax)
	}
	return regexp.Compile(text)
}

// fits tells whether all but the path is as the match wants it.
func (m *match) fits(a *asked) bool {
	if m.method != "" && m.method != a.Method {
		return false
	}
	for i := range m.headers {
		has := a.Header[m.headers[i].name]
		if len(has) == 0 || !m.headers[i].fits(strings.Join(has, ",")) {
			return false
		}
	}
	for i := range m.query {
		has := a.parameters()[m.query[i].name]
		if len(has) == 0 || !m.query[i].fits(has[0]) {
			return false
		}
	}
	return true
}

// choose takes one of the backends, by their weights.
func (m *match) choose() *table.Route {
	at := 0
	if len(m.shares) > 1 {
		at = rand.IntN(m.total)
	}
	for i := range m.shares {
		if at -= m.shares[i].weight; at < 0 {
			return m.shares[i].route
		}
	}
	return nil // there is one at least
}

// asked is a request; its query is read once, and only if somebody wants to know.
type asked struct {
	*http.Request
	query url.Values
}

func (a *asked) parameters() url.Values {
	if a.query == nil {
		a.query = a.URL.Query()
	}
	return a.query
}
