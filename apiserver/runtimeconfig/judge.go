package runtimeconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
)

// Validate says, a line for each, which values cannot be honoured.
func Validate(config map[string]string) error {
	absent, err := Judge(config)
	wrong := []error{err}
	for _, name := range absent {
		wrong = append(wrong, fmt.Errorf("--runtime-config: %s=true: setpoint serves stable versions only", name))
	}
	return errors.Join(wrong...)
}

// Judge says which keys turn on what is not served, and, as an error, which would turn off what is or are not right.
func Judge(config map[string]string) (absent []string, err error) {
	served := servedVersions()
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(config)) {
		on, err := enabled(config[name])
		covers := coveredBy(name, served)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("--runtime-config: %s=%s is neither true nor false", name, config[name]))
		case !known(name, served):
			wrong = append(wrong, fmt.Errorf("--runtime-config: %s: nothing has this name: "+
				"it takes api/all, api/ga, api/beta, api/alpha, GROUP/VERSION and GROUP/VERSION/RESOURCE", name))
		case !on && covers.served:
			wrong = append(wrong, fmt.Errorf("--runtime-config: %s=false: setpoint cannot turn off what it serves", name))
		case on && covers.others:
			absent = append(absent, name)
		}
	}
	return absent, errors.Join(wrong...)
}

// enabled reads a value; none is true, as upstream.
func enabled(value string) (bool, error) {
	if value == "" {
		return true, nil
	}
	return strconv.ParseBool(value)
}

// servedVersions are the group versions of built-in kinds.
func servedVersions() []schema.GroupVersion {
	served := []schema.GroupVersion{authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion}
	for _, kind := range kinds.All() {
		served = append(served, kind.GroupVersionKind.GroupVersion())
	}
	return served
}

// unserved is the one group of upstream's API server of which nothing is served here.
const unserved = "internal.apiserver.k8s.io"

// known tells whether a key is about what upstream has, by its words and group.
func known(key string, served []schema.GroupVersion) bool {
	parts := strings.Split(key, "/")
	switch {
	case parts[0] == "api":
		return slices.Contains([]string{"api/all", "api/ga", "api/beta", "api/alpha"}, key)
	case len(parts) > 3 || slices.Contains(parts, ""):
		return false
	case len(parts) == 1:
		return slices.Contains(served, schema.GroupVersion{Version: key})
	}
	return parts[0] == unserved || slices.ContainsFunc(served, func(gv schema.GroupVersion) bool { return gv.Group == parts[0] })
}

// coverage says what a key is about: versions that are served, and others.
type coverage struct{ served, others bool }

// coveredBy reads a key: api/all, api/ga, api/beta, api/alpha, v1, <group>/<version> or <group>/<version>/<resource>.
func coveredBy(key string, served []schema.GroupVersion) coverage {
	parts := strings.Split(key, "/")
	switch {
	case key == "api/all":
		return coverage{served: true, others: true}
	case key == "api/ga":
		return coverage{served: true}
	case parts[0] == "api":
		return coverage{others: true}
	case len(parts) == 1:
		parts = []string{"", key}
	}
	here := slices.Contains(served, schema.GroupVersion{Group: parts[0], Version: parts[1]})
	return coverage{served: here, others: !here}
}
