package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/sampled"
)

// checkTimeout bounds one health check: a check that hangs has failed.
const checkTimeout = 5 * time.Second

// Check is one named health check.
type Check struct {
	// Name is a path element.
	Name string
	// Live: failing means that only a restart helps (/livez). Every check is part of /healthz and /readyz.
	Live bool
	// Check returns nil when all is well. It must return when its context ends. An error that
	// is or wraps a Remark does not fail the check.
	Check func(context.Context) error
}

// Remark is what a check that passes has to say: a word or two, which everybody may read.
type Remark string

// Error implements error.
func (r Remark) Error() string { return string(r) }

type health struct {
	checks     []Check
	log        *slog.Logger
	indicators *indicators
	// failures chooses which failed checks are logged.
	failures sampled.Sampler
}

func newHealth(checks []Check, log *slog.Logger) *health {
	ping := Check{Name: "ping", Live: true, Check: func(context.Context) error { return nil }}
	return &health{checks: append([]Check{ping}, checks...), log: log, indicators: newIndicators()}
}

// of returns the checks behind an endpoint ("livez").
func (h *health) of(endpoint string) []Check {
	if endpoint != "livez" {
		return h.checks
	}
	return slices.DeleteFunc(slices.Clone(h.checks), func(check Check) bool { return !check.Live })
}

func (h *health) paths() []string {
	var paths []string
	for _, endpoint := range []string{"healthz", "livez", "readyz"} {
		paths = append(paths, "/"+endpoint)
		for _, check := range h.of(endpoint) {
			paths = append(paths, "/"+endpoint+"/"+check.Name)
		}
	}
	return paths
}

// serve answers /livez, /livez/<check>, and the parameters verbose and exclude as upstream does.
// Why a check fails is logged and not told: everybody may ask.
func (h *health) serve(w http.ResponseWriter, request *http.Request, path string) {
	endpoint, name, single := strings.Cut(path[1:], "/")
	checks := h.of(endpoint)
	if single {
		checks = slices.DeleteFunc(slices.Clone(checks), func(check Check) bool { return check.Name != name })
		if len(checks) == 0 {
			http.NotFound(w, request)
			return
		}
	}
	query := request.URL.Query()
	report, healthy := h.run(request.Context(), endpoint, checks, query["exclude"])
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache, private")
	switch {
	case !healthy:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, "%s%s check failed\n", report, endpoint)
	case query.Has("verbose"):
		_, _ = fmt.Fprintf(w, "%s%s check passed\n", report, endpoint)
	default:
		_, _ = fmt.Fprint(w, "ok")
	}
}

func (h *health) run(ctx context.Context, endpoint string, checks []Check, exclude []string) (report string, healthy bool) {
	var lines strings.Builder
	healthy = true
	for _, check := range checks {
		if slices.Contains(exclude, check.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", check.Name)
			continue
		}
		err, remark := runCheck(ctx, check), Remark("")
		passed := err == nil || errors.As(err, &remark)
		h.indicators.observe(check.Name, endpoint, passed)
		if passed && err != nil {
			fmt.Fprintf(&lines, "[+]%s %s: ok\n", check.Name, remark)
			continue
		}
		if err != nil {
			healthy = false
			if skipped, tell := h.failures.Tell(endpoint+" "+check.Name, time.Now()); tell { // everybody may ask, and does
				h.log.Warn("health check failed", "endpoint", endpoint, "check", check.Name, "err", err, "skipped", skipped)
			}
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", check.Name)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", check.Name)
	}
	return lines.String(), healthy
}

func runCheck(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check.Check(ctx)
}
