package standin

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// stable versions are the ones that are served.
var stable = regexp.MustCompile(`^v[0-9]+$`)

// judgeVersions judges --runtime-config, which turns versions of built-in APIs on and off. Those that are there are on:
// whoever turns one of them off is refused, and whoever turns others on is told that they are not there.
func judgeVersions(config map[string]string, errOut io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		on, err := strconv.ParseBool(config[name])
		if config[name] == "" {
			on, err = true, nil // as upstream
		}
		if err != nil {
			return fmt.Errorf("--runtime-config: %s=%s is neither true nor false", name, config[name])
		}
		switch covers := versionsOf(name); {
		case !on && covers.stable:
			return fmt.Errorf("--runtime-config: %s=false: setpoint cannot turn off what it serves", name)
		case on && covers.others:
			fmt.Fprintf(errOut, "Warning: %s: --runtime-config=%s=true: setpoint serves stable versions only, "+
				"so versions such as v1beta1 and v1alpha1 are not there\n", APIServer, name)
		}
	}
	return nil
}

// versions says which kinds of versions are meant.
type versions struct{ stable, others bool }

// versionsOf reads a key: api/all, api/ga, api/beta, api/alpha, v1, <group>/<version> or <group>/<version>/<resource>.
func versionsOf(key string) versions {
	switch parts := strings.Split(key, "/"); {
	case key == "api/all":
		return versions{stable: true, others: true}
	case key == "api/ga":
		return versions{stable: true}
	case parts[0] == "api":
		return versions{others: true}
	default:
		version := parts[min(1, len(parts)-1)]
		return versions{stable: stable.MatchString(version), others: !stable.MatchString(version)}
	}
}
