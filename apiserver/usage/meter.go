package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	// roundInterval is the time between two questions to a node; metrics-server's.
	roundInterval = 15 * time.Second
	// answerTimeout bounds one question.
	answerTimeout = 5 * time.Second
	// idleTimeout is how long after the last request the rounds end.
	idleTimeout = 5 * time.Minute
	// firstRoundTimeout bounds how long a request waits for the first round: longer than one node may take.
	firstRoundTimeout = 7 * time.Second
	// questionsAtOnce bounds the nodes that are asked at the same time.
	questionsAtOnce = 32
)

// Source asks nodes. It bounds the bytes of an answer.
type Source interface {
	// Summary is what a node says that it and its pods use. pods are those bound to it; they are shared.
	Summary(ctx context.Context, node *corev1.Node, pods []*corev1.Pod) (*stats.Summary, error)
}

// Config is what a Meter is made of. All fields are required.
type Config struct {
	Store  *storage.Store
	Source Source
	Logger *slog.Logger
}

// Meter knows what nodes and pods use while somebody asks for it. It is safe for concurrent use.
type Meter struct {
	config      Config
	nodes, pods *storage.Table
	wake        chan struct{} // has room for one

	mu sync.Mutex
	// asked is when the last request came.
	asked time.Time
	// measured is closed after the first round since the meter woke.
	measured chan struct{}
	// known is what the last answers said, by the name of the node.
	known map[string]*nodeUsage
}

var (
	nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource  = corev1.SchemeGroupVersion.WithResource("pods")
)

// New returns a meter that knows nothing until it runs and is asked.
func New(config Config) *Meter {
	return &Meter{
		config: config, nodes: config.Store.Table(nodesResource), pods: config.Store.Table(podsResource),
		wake: make(chan struct{}, 1), measured: make(chan struct{}), known: map[string]*nodeUsage{},
	}
}

// Run measures while somebody asks, until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
		if !m.measure(ctx) {
			return
		}
	}
}

// measure makes rounds until nobody asks. It returns false if ctx has ended.
func (m *Meter) measure(ctx context.Context) bool {
	next := time.NewTicker(roundInterval)
	defer next.Stop()
	for !m.idle() {
		m.round(ctx)
		m.announce()
		select {
		case <-ctx.Done():
			return false
		case <-next.C:
		}
	}
	return true
}

// await notes that somebody asks, and waits until there has been a round.
func (m *Meter) await(ctx context.Context) {
	m.mu.Lock()
	m.asked = time.Now()
	measured := m.measured
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // it is going to look
	}
	ctx, cancel := context.WithTimeout(ctx, firstRoundTimeout)
	defer cancel()
	select {
	case <-measured:
	case <-ctx.Done():
	}
}

// idle reports whether nobody has asked for long, and forgets everything then.
func (m *Meter) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) < idleTimeout {
		return false
	}
	clear(m.known)
	select {
	case <-m.measured:
		m.measured = make(chan struct{})
	default: // nobody knows of a round
	}
	return true
}

// announce lets those go on who wait for the first round.
func (m *Meter) announce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.measured:
	default:
		close(m.measured)
	}
}
