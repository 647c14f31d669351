package probes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
)

// Kind of a probe.
type Kind string

// The three probes of a container, as they are called in events.
const (
	Startup   Kind = "Startup"
	Liveness  Kind = "Liveness"
	Readiness Kind = "Readiness"
)

// Config of a Set; all fields but Counts are required.
type Config struct {
	// Exec runs a command in a container; see Execer.
	Exec Execer
	// Events records failures.
	Events events.Recorder
	// Changed is called, from the prober's goroutine, after a verdict changed.
	Changed func()
	// UserAgent of HTTP probes, such as "kube-probe/1.37".
	UserAgent string
	// Counts adds up the results.
	Counts *Counts
}

// Target is one running container.
type Target struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	ID        string
	StartedAt time.Time
	// IP is where probes without a host go.
	IP string
	// Known says that the container ran before this agent did: its last known
	// verdicts stand until a probe says otherwise.
	Known, WasReady, WasStarted bool
}

// Set is the probes of one pod. The zero value is not ready; use New.
type Set struct {
	cfg     Config
	mu      sync.Mutex
	probers map[string]*prober // by container id
	running sync.WaitGroup
}

// New returns an empty Set.
func New(cfg Config) *Set { return &Set{cfg: cfg, probers: map[string]*prober{}} }

// Sync starts probing the targets that are new and stops what is no longer
// among them. Probes end with ctx, too.
func (s *Set) Sync(ctx context.Context, targets []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := map[string]bool{}
	for _, t := range targets {
		keep[t.ID] = true
		if s.probers[t.ID] == nil {
			s.probers[t.ID] = s.start(ctx, t)
		}
	}
	for id, p := range s.probers {
		if !keep[id] {
			p.cancel()
			delete(s.probers, id)
		}
	}
}

// Close stops all probes and waits for them.
func (s *Set) Close() {
	s.mu.Lock()
	for id, p := range s.probers {
		p.cancel()
		delete(s.probers, id)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Ready reports whether the container passes its readiness probe. A container
// that is not a target is not ready.
func (s *Set) Ready(id string) bool {
	s.mu.Lock()
	p := s.probers[id]
	s.mu.Unlock()
	return p != nil && p.verdict(Readiness) == success
}

// Started reports whether the container has passed its startup probe once.
func (s *Set) Started(id string) bool {
	s.mu.Lock()
	p := s.probers[id]
	s.mu.Unlock()
	return p != nil && p.verdict(Startup) == success
}

// Failed returns the probe because of which the container must be restarted, or "".
func (s *Set) Failed(id string) Kind {
	s.mu.Lock()
	p := s.probers[id]
	s.mu.Unlock()
	switch {
	case p == nil:
		return ""
	case p.verdict(Startup) == failure:
		return Startup
	case p.verdict(Liveness) == failure:
		return Liveness
	default:
		return ""
	}
}

// verdict of a probe; unknown until enough results agree.
type verdict int

const (
	unknown verdict = iota
	success
	failure
)

// prober probes one container.
type prober struct {
	Target
	cfg     *Config
	cancel  context.CancelFunc
	started chan struct{} // closed when the startup probe has passed

	mu       sync.Mutex
	verdicts map[Kind]verdict
}

func (s *Set) start(ctx context.Context, t Target) *prober {
	ctx, cancel := context.WithCancel(ctx)
	p := &prober{Target: t, cfg: &s.cfg, cancel: cancel, started: make(chan struct{}),
		verdicts: map[Kind]verdict{Startup: success, Liveness: success, Readiness: success}}
	c := t.Container
	if c.ReadinessProbe != nil && !(t.Known && t.WasReady) {
		p.verdicts[Readiness] = unknown
	}
	if c.StartupProbe != nil && !(t.Known && t.WasStarted) {
		p.verdicts[Startup] = unknown
		s.run(ctx, p, Startup, c.StartupProbe)
	} else {
		close(p.started)
	}
	s.run(ctx, p, Liveness, c.LivenessProbe)
	s.run(ctx, p, Readiness, c.ReadinessProbe)
	return p
}

func (s *Set) run(ctx context.Context, p *prober, kind Kind, probe *corev1.Probe) {
	if probe != nil {
		s.running.Go(func() { p.loop(ctx, kind, probe) })
	}
}

func (p *prober) verdict(k Kind) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verdicts[k]
}

// decide stores a verdict and tells about a change.
func (p *prober) decide(k Kind, v verdict) {
	p.mu.Lock()
	changed := p.verdicts[k] != v
	p.verdicts[k] = v
	p.mu.Unlock()
	if changed && k == Startup && v == success {
		close(p.started)
	}
	if changed {
		p.cfg.Changed()
	}
}

// loop probes every period until ctx ends or nothing more can change.
func (p *prober) loop(ctx context.Context, kind Kind, probe *corev1.Probe) {
	if kind != Startup {
		select {
		case <-ctx.Done():
			return
		case <-p.started:
		}
	}
	period, timeout := seconds(probe.PeriodSeconds, defaultPeriod), seconds(probe.TimeoutSeconds, defaultTimeout)
	times := p.schedule(kind, probe, period)
	var tally tally
	for sleepUntil(ctx, times.next) {
		r := p.check(ctx, probe, timeout)
		if ctx.Err() != nil {
			return
		}
		p.cfg.Counts.add(kind, r.ok, p.Pod, p.Container.Name)
		end := time.Now()
		if (r.ok || !times.extra()) && !paused(times.next, end, period, timeout) {
			p.report(kind, r)
			if v := tally.add(r.ok, probe); v != unknown {
				p.decide(kind, v)
				if final(kind, v) {
					return
				}
			}
		}
		times.advance(r.ok, end)
	}
}

func (p *prober) schedule(kind Kind, probe *corev1.Probe, period time.Duration) *schedule {
	first := p.first(probe, period)
	if p.Known {
		return newSchedule(first, period)
	}
	due := first
	if settled := p.StartedAt.Add(settleTime); due.Before(settled) {
		due = settled
	}
	times := newSchedule(due, period)
	switch {
	case kind == Liveness: // it is alive until it fails
	case probe.Exec != nil:
		times.hurry(first, eagerExecFirst, eagerExecMax)
	default:
		times.hurry(first, eagerFirst, eagerMax)
	}
	return times
}

// final verdicts end a loop: a startup probe that passed is never asked again,
// and a container about to be restarted needs no more questions.
func final(kind Kind, v verdict) bool {
	return kind == Startup || kind == Liveness && v == failure
}

// first is when to begin. Containers found running at the agent's start are
// spread over a period, so that a full node does not probe all at once.
func (p *prober) first(probe *corev1.Probe, period time.Duration) time.Time {
	now := time.Now()
	if p.Known {
		return now.Add(rand.N(period))
	}
	at := p.StartedAt.Add(time.Duration(probe.InitialDelaySeconds) * time.Second)
	if at.Before(now) {
		return now
	}
	return at
}

// paused reports whether a probe due at due and done at end took so long that
// this process, not the container, must have been stopped.
func paused(due, end time.Time, period, timeout time.Duration) bool {
	return end.Sub(due) > period+timeout
}

// tally counts equal results in a row.
type tally struct {
	last  bool
	count int32
}

// add returns the verdict the new result leads to, unknown below the threshold.
func (t *tally) add(ok bool, probe *corev1.Probe) verdict {
	if t.count > 0 && t.last == ok {
		t.count++
	} else {
		t.last, t.count = ok, 1
	}
	switch {
	case ok && t.count >= max(1, probe.SuccessThreshold):
		return success
	case !ok && t.count >= orThreshold(probe.FailureThreshold):
		return failure
	default:
		return unknown
	}
}

// The API defaults these; a spec from elsewhere may lack them.
const (
	defaultPeriod    = 10 * time.Second
	defaultTimeout   = time.Second
	defaultThreshold = 3
)

func orThreshold(n int32) int32 {
	if n <= 0 {
		return defaultThreshold
	}
	return n
}

func seconds(n int32, d time.Duration) time.Duration {
	if n <= 0 {
		return d
	}
	return time.Duration(n) * time.Second
}

func (p *prober) report(kind Kind, r result) {
	ref := events.Container(p.Pod, p.Container.Name)
	switch {
	case !r.ok:
		p.cfg.Events.Event(ref, corev1.EventTypeWarning, events.Unhealthy, fmt.Sprintf("%s probe failed: %s", kind, r.message))
	case r.warning != "":
		p.cfg.Events.Event(ref, corev1.EventTypeWarning, events.ProbeWarning, fmt.Sprintf("%s probe warning: %s", kind, r.warning))
	}
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
