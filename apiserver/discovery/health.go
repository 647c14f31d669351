package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/sampled"
)

// checkTimeout bounds one health check: a check that hangs has failed.
const checkTimeout = 5 * time.Second

// freshFor is how long /metrics/slis shows what checks have said before it asks again: a kubelet's pause between two probes.
const freshFor = 10 * time.Second

// Check is one named health check.
type Check struct {
	// Name is a part of a path.
	Name string
	// As are further names under which the result is told: upstream's, of what the check stands for.
	As []string
	// Check returns nil when all is well. It must return when its context ends. An error that
	// is or wraps a Remark does not fail the check. It is part of /healthz and /readyz.
	Check func(context.Context) error
	// Live is asked in its place for /livez, where failing means that only a restart helps. Nil: it is no part of /livez.
	Live func(context.Context) error
	// OnlyReady leaves it out of /healthz, too.
	OnlyReady bool
}

// Passes is a Check that always does.
func Passes(context.Context) error { return nil }

func (c Check) names() []string { return append([]string{c.Name}, c.As...) }

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
	// asked is when all checks of an endpoint were asked last; mu is held while /metrics/slis asks them.
	mu    sync.Mutex
	asked map[string]time.Time
}

func newHealth(checks []Check, log *slog.Logger) *health {
	ping := Check{Name: "ping", Check: Passes, Live: Passes}
	return &health{checks: append([]Check{ping}, checks...), log: log, indicators: newIndicators(), asked: map[string]time.Time{}}
}

// of returns the checks behind an endpoint ("livez").
func (h *health) of(endpoint string) (checks []Check) {
	for _, check := range h.checks {
		if endpoint == "livez" {
			check.Check = check.Live
		}
		if check.Check != nil && (endpoint == "readyz" || !check.OnlyReady) {
			checks = append(checks, check)
		}
	}
	return checks
}

func (h *health) paths() []string {
	var paths []string
	for _, endpoint := range []string{"healthz", "livez", "readyz"} {
		paths = append(paths, "/"+endpoint)
		for _, check := range h.of(endpoint) {
			for _, name := range check.names() {
				paths = append(paths, "/"+endpoint+"/"+name)
			}
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
		at := slices.IndexFunc(checks, func(check Check) bool { return slices.Contains(check.names(), name) })
		if at < 0 {
			http.NotFound(w, request)
			return
		}
		checks = []Check{{Name: name, Check: checks[at].Check}}
	}
	query := request.URL.Query()
	if !single && !query.Has("exclude") {
		h.note(endpoint)
	}
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

func (h *health) note(endpoint string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[endpoint] = time.Now()
}

// serveIndicators asks what nobody has asked of late, as a kubelet's probes do of upstream's servers, and shows how the checks ended.
func (h *health) serveIndicators(w http.ResponseWriter, request *http.Request) {
	h.refresh(context.WithoutCancel(request.Context())) // who hangs up makes no check fail
	h.indicators.handler.ServeHTTP(w, request)
}

func (h *health) refresh(ctx context.Context) {
	for _, endpoint := range []string{"livez", "readyz"} {
		if h.due(endpoint) {
			h.run(ctx, endpoint, h.of(endpoint), nil)
		}
	}
}

// due reports whether somebody should ask an endpoint, and notes that somebody does. Probes do not wait for checks that were asked here.
func (h *health) due(endpoint string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked[endpoint]) < freshFor {
		return false
	}
	h.asked[endpoint] = time.Now()
	return true
}

func (h *health) run(ctx context.Context, endpoint string, checks []Check, exclude []string) (report string, healthy bool) {
	var lines strings.Builder
	healthy = true
	for _, check := range checks {
		var names []string
		for _, name := range check.names() {
			if slices.Contains(exclude, name) {
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", name)
			} else {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			continue
		}
		mark, result := h.ask(ctx, endpoint, check, names)
		healthy = healthy && mark == passed
		for _, name := range names {
			fmt.Fprintf(&lines, "%s%s %s\n", mark, name, result)
		}
	}
	return lines.String(), healthy
}

// What stands before a check's name.
const (
	passed = "[+]"
	failed = "[-]"
)

// ask runs a check, notes how it ended under the names that are asked for, and returns what is told of it.
func (h *health) ask(ctx context.Context, endpoint string, check Check, names []string) (mark, result string) {
	err, remark := runCheck(ctx, check), Remark("")
	well := err == nil || errors.As(err, &remark)
	for _, name := range names {
		h.indicators.observe(name, endpoint, well)
	}
	switch {
	case err == nil:
		return passed, "ok"
	case well:
		return passed, fmt.Sprintf("%s: ok", remark)
	}
	if skipped, tell := h.failures.Tell(endpoint+" "+check.Name, time.Now()); tell { // everybody may ask, and does
		h.log.Warn("health check failed", "endpoint", endpoint, "check", check.Name, "err", err, "skipped", skipped)
	}
	return failed, "failed: reason withheld"
}

func runCheck(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check.Check(ctx)
}
