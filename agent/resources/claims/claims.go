package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

// Config of New; all of it is required.
type Config struct {
	NodeName string
	Client   kubernetes.Interface
	// File keeps who uses which claim; its folder exists.
	File string
	// Affected is called with a pod whose devices may have changed their health.
	Affected func(types.UID)
	Logger   *slog.Logger
}

// Manager knows the drivers of this node and the claims that its pods use. It is safe for concurrent use.
type Manager struct {
	Config
	ctx      context.Context // of New: slices are deleted until it ends
	children sync.WaitGroup
	drivers  drivers

	mu     sync.Mutex // before drivers.mu
	claims map[types.NamespacedName]*claim
}

// claim is one that pods of this node use. Manager.mu guards its fields; who changes what a driver has prepared holds the turn.
type claim struct {
	record
	// prepared: in the life of this agent. After the machine has started anew, drivers have to prepare again.
	prepared bool
	// turn holds one while somebody speaks to drivers about the claim.
	turn chan struct{}
}

func newClaim(r record) *claim { return &claim{record: r, turn: make(chan struct{}, 1)} }

func (c *claim) usedBy(pod types.UID) bool { return slices.Contains(c.Pods, pod) }

// take waits for the turn.
func (c *claim) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *claim) leave() { <-c.turn }

// New reads what an earlier agent has left. A file that is damaged is an error: what it says is prepared would stay so for good.
func New(ctx context.Context, cfg Config) (*Manager, error) {
	m := &Manager{Config: cfg, ctx: ctx, claims: map[types.NamespacedName]*claim{}}
	m.drivers = drivers{byName: map[string][]*driver{}, health: map[string]map[deviceName]health{}, wiping: map[string]context.CancelFunc{}}
	data, err := os.ReadFile(cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("resource claims: %w", err)
	}
	records, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("resource claims: %w: stop the pods that use claims and remove %s", err, cfg.File)
	}
	for _, r := range records {
		m.claims[r.key()] = newClaim(r)
	}
	return m, nil
}

// Run deletes the slices that drivers have left here, and ends with ctx: then drivers are spoken to no more.
func (m *Manager) Run(ctx context.Context) {
	m.children.Go(func() { m.wipe(ctx, "") })
	<-ctx.Done()
	m.children.Wait()
	m.drivers.closeAll()
}

// save writes the file. m.mu is held.
func (m *Manager) save() error {
	var records []record
	for _, c := range m.claims {
		records = append(records, c.record)
	}
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	data, err := encode(records)
	if err != nil {
		return err
	}
	return private.WriteFile(m.File, data)
}

// Has reports whether the pod uses a claim for which drivers may have prepared something.
func (m *Manager) Has(pod types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.claims {
		if c.usedBy(pod) {
			return true
		}
	}
	return false
}

// Pods are those that use claims.
func (m *Manager) Pods() []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []types.UID
	for _, c := range m.claims {
		out = append(out, c.Pods...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
