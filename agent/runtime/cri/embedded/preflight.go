package embedded

import (
	"path"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/trial"
)

// preflightInterval is how often a machine that cannot run containers is tried again.
const preflightInterval = 10 * time.Second

// preflight is what a machine must be able to do before a pod is sent to it: cgroups with limits and devices, namespaces,
// mounts.
// Once it was, it is not asked again.
type preflight struct {
	mu      sync.Mutex
	checked time.Time
	err     error
}

// check returns why no container can run here, nil if one can.
func (p *preflight) check(r *Runtime) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checked.IsZero() || p.err != nil && time.Since(p.checked) >= preflightInterval {
		if p.err = r.tryCgroup(); p.err == nil {
			p.err = trial.Container(r.executable.Path, r.config.DataDir)
		}
		p.checked = time.Now()
	}
	return p.err
}

func (g *groups) tryCgroup() error {
	g.paths.Lock()
	defer g.paths.Unlock()
	return trial.Cgroup(path.Join(g.cgroupRoot(), "preflight"))
}
