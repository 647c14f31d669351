package dynamic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// lazy is a plugin that is built when the first object that configures it exists,
// and asked only while there is one.
type lazy[P admission.Interface] struct {
	*admission.Handler
	name  string // upstream's
	table *storage.Table
	build func() (P, error)
	// always: it is asked also while there is no such object, since files configure it too.
	always bool

	mu     sync.Mutex // one builds
	plugin atomic.Pointer[P]
}

// lazyMutation and lazyValidation ask only at their own turn: each look costs.
type (
	lazyMutation struct {
		lazy[admission.MutationInterface]
	}
	lazyValidation struct {
		lazy[admission.ValidationInterface]
	}
)

var (
	_ admission.MutationInterface   = (*lazyMutation)(nil)
	_ admission.ValidationInterface = (*lazyValidation)(nil)
)

// Admit implements admission.MutationInterface.
func (l *lazyMutation) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p, needed, err := l.needed()
	if !needed || err != nil {
		return err
	}
	return p.Admit(ctx, a, o)
}

// Validate implements admission.ValidationInterface.
func (l *lazyValidation) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p, needed, err := l.needed()
	if !needed || err != nil {
		return err
	}
	return p.Validate(ctx, a, o)
}

// Name is upstream's name of the plugin.
func (l *lazy[P]) Name() string { return l.name }

// needed returns the plugin, unless nothing configures it.
func (l *lazy[P]) needed() (p P, needed bool, err error) {
	if l.table.Empty() && !l.always {
		return p, false, nil
	}
	if built := l.plugin.Load(); built != nil {
		return *built, true, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if built := l.plugin.Load(); built != nil {
		return *built, true, nil
	}
	if p, err = l.build(); err != nil {
		return p, false, apierrors.NewInternalError(fmt.Errorf("admission by %s: %w", l.table.Kind().Plural, err))
	}
	l.plugin.Store(&p)
	return p, true, nil
}
