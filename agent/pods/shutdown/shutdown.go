package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/pods/status"
)

const (
	// reason and message of the pods that ended, upstream's; reasonEvent of events on the Node.
	reason      = "Terminated"
	message     = "Pod was terminated in response to imminent node shutdown."
	reasonEvent = "NodeShutdown"
	// poll is how often it is asked whether pods have ended.
	poll = 100 * time.Millisecond
	// tellTimeout is how long the API has to hear how the pods ended: it may be gone already.
	tellTimeout = 5 * time.Second
	// retry is the pause before logind is asked again.
	retry = 10 * time.Second
	// delaySteps and delayFirst bound how long logind has to take over a longer delay: the pauses double.
	delaySteps = 5
	delayFirst = 100 * time.Millisecond
)

// ErrNow is why the node is not ready while the machine shuts down.
var ErrNow = errors.New("node is shutting down")

// Pods are those that run on this node; a pods.Manager.
type Pods interface {
	Active() []*corev1.Pod
	Fail(uid types.UID, why status.Rejection) bool
	// Live: a container of the pod runs.
	Live(uid types.UID) bool
	// Told: the API knows that the pod has ended.
	Told(uid types.UID) bool
}

// Logind is what systemd-logind does for us.
type Logind interface {
	// Delay is how long logind waits for locks; SetDelay asks it to wait longer.
	Delay() (time.Duration, error)
	SetDelay(time.Duration) error
	// Inhibit takes a lock, which Close gives back.
	Inhibit() (io.Closer, error)
	// Watch tells of a shutdown that begins, or is called off; the channel is closed when the connection is lost.
	Watch() (<-chan bool, error)
	Close() error
}

// Config of a Manager. Logger may be nil, and Connect for one that only Ends.
type Config struct {
	NodeName string
	Periods  []Period
	Pods     Pods
	State    *State
	Events   events.Recorder
	// Changed is called when the machine begins to shut down, or does not any more.
	Changed func()
	Connect func() (Logind, error)
	Logger  *slog.Logger
}

// State says whether the machine is shutting down. The zero value says no; it is safe for concurrent use.
type State struct{ now atomic.Bool }

// Now reports whether the machine is shutting down: no pod may start any more.
func (s *State) Now() bool { return s.now.Load() }

// Manager ends pods before the machine does. Use New.
type Manager struct {
	Config
	told string // the last trouble with logind
}

// New returns a Manager that does nothing before Run or End.
func New(cfg Config) *Manager {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{Config: cfg}
}

// Run follows logind until ctx ends. Without periods it returns at once.
func (m *Manager) Run(ctx context.Context) {
	if Total(m.Periods) == 0 {
		return
	}
	for ctx.Err() == nil {
		err := m.follow(ctx)
		if ctx.Err() == nil && err.Error() != m.told {
			m.told = err.Error()
			m.Logger.Warn("pods will not end in order when the machine shuts down", "err", err)
		}
		wait.For(ctx, retry)
	}
}

// follow holds the lock and acts on what logind tells. It returns when that is not possible.
func (m *Manager) follow(ctx context.Context) error {
	logind, err := m.Connect()
	if err != nil {
		return fmt.Errorf("connect to systemd-logind: %w", err)
	}
	defer logind.Close()
	if err := m.lengthen(ctx, logind); err != nil {
		return err
	}
	lock, err := logind.Inhibit()
	if err != nil {
		return fmt.Errorf("hold up shutdowns: %w", err)
	}
	defer func() { lock.Close() }()
	signals, err := logind.Watch()
	if err != nil {
		return fmt.Errorf("hear of shutdowns: %w", err)
	}
	m.told = ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case begins, ok := <-signals:
			if !ok {
				return errors.New("the connection to systemd-logind was lost")
			}
			if begins {
				m.End(ctx)
				lock.Close()
				continue
			}
			m.set(false, "Shutdown manager detected shutdown cancellation")
			again, err := logind.Inhibit()
			if err != nil {
				return fmt.Errorf("hold up shutdowns again: %w", err)
			}
			lock.Close()
			lock = again
		}
	}
}

// lengthen makes logind wait as long as the groups may take.
func (m *Manager) lengthen(ctx context.Context, logind Logind) error {
	need := Total(m.Periods)
	have, err := logind.Delay()
	if err != nil || have >= need {
		return err
	}
	if err := logind.SetDelay(need); err != nil {
		return fmt.Errorf("have systemd-logind wait for %v: %w", need, err)
	}
	for step, pause := 0, delayFirst; step < delaySteps && wait.For(ctx, pause); step, pause = step+1, pause*2 {
		if have, err = logind.Delay(); err != nil || have >= need {
			return err
		}
	}
	return fmt.Errorf("systemd-logind waits for %v only, pods need %v", have, need)
}

func (m *Manager) set(now bool, text string) {
	m.State.now.Store(now)
	node := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: m.NodeName, UID: types.UID(m.NodeName)}
	m.Events.Event(node, corev1.EventTypeNormal, reasonEvent, text)
	m.Changed()
}

// End ends all pods, group by group, and returns when none runs or their time is over.
func (m *Manager) End(ctx context.Context) {
	m.set(true, "Shutdown manager detected shutdown event")
	active := m.Pods.Active()
	for _, g := range groups(m.Periods, active) {
		m.Logger.Info("ending pods: the machine shuts down", "pods", len(g.pods), "priority", g.Priority, "seconds", g.Seconds)
		for _, pod := range g.pods {
			grace := g.grace(pod)
			m.Pods.Fail(pod.UID, status.Rejection{Reason: reason, Message: message, GraceSeconds: &grace, Disrupted: true})
		}
		await(ctx, time.Duration(g.Seconds)*time.Second, g.pods, func(pod *corev1.Pod) bool { return !m.Pods.Live(pod.UID) })
	}
	await(ctx, tellTimeout, active, func(pod *corev1.Pod) bool { return m.Pods.Told(pod.UID) })
}

// await returns when all pods are done, or when the time is over.
func await(ctx context.Context, d time.Duration, pods []*corev1.Pod, done func(*corev1.Pod) bool) {
	open := func(pod *corev1.Pod) bool { return !done(pod) }
	for began := time.Now(); time.Since(began) < d && slices.ContainsFunc(pods, open); {
		if !wait.For(ctx, poll) {
			return
		}
	}
}
