package parts

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/internal/parts"
)

// The procedures between servers: reportPath answers POST with a Report, logsPath GET as a kubelet does.
const (
	servicePath = "/setpoint.v1.PartsService"
	reportPath  = servicePath + "/Report"
	logsPath    = servicePath + "/containerLogs/"
)

// Parts are those of one server.
type Parts struct {
	name, version string
	logger        *slog.Logger
	started       time.Time
	logs          map[string]*actions.Log
	checks        map[string]func(ctx context.Context) error
}

// New makes the parts of a server that starts now, under its name and Setpoint's version. Check must be called before it serves.
func New(name, version string, logger *slog.Logger) *Parts {
	p := &Parts{name: name, version: version, logger: logger, started: time.Now(), logs: map[string]*actions.Log{}}
	for _, part := range parts.All() {
		p.logs[part] = &actions.Log{}
	}
	return p
}

// Check says how each part is asked whether it is well; nil is well. The leader asks every few seconds, each time with a deadline.
func (p *Parts) Check(checks map[string]func(ctx context.Context) error) { p.checks = checks }

// Log is where the actions of a part go.
func (p *Parts) Log(part string) *actions.Log { return p.logs[part] }

// Report is how the parts of a server are.
type Report struct {
	// Version is Setpoint's on that server, StartedAt when the server started.
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	// Troubles are why a part is not ready; one that is ready is not there.
	Troubles map[string]string `json:"troubles,omitempty"`
}

// Report asks every part of this server. It takes no longer than askTimeout.
func (p *Parts) Report(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	report := Report{Version: p.version, StartedAt: p.started, Troubles: map[string]string{}}
	for part, check := range p.checks {
		if err := check(ctx); err != nil {
			report.Troubles[part] = err.Error()
		}
	}
	return report
}

// Services are where other servers ask.
func (p *Parts) Services() []apiserver.Service {
	return []apiserver.Service{
		{Prefix: reportPath, Handler: http.HandlerFunc(p.serveReport), Allow: auth.IsServer, Traffic: apiserver.Parts},
		{Prefix: logsPath, Handler: http.HandlerFunc(p.serveLogs), Allow: auth.IsServer, Traffic: apiserver.Parts},
	}
}

func (p *Parts) serveReport(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST with an empty JSON object", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.Report(r.Context())) // the client is gone if this fails
}
