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
type lazy struct {
	*admission.Handler
	table *storage.Table
	build func() (admission.Interface, error)

	mu     sync.Mutex // one builds
	plugin atomic.Pointer[admission.Interface]
}

var (
	_ admission.MutationInterface   = (*lazy)(nil)
	_ admission.ValidationInterface = (*lazy)(nil)
)

// Admit implements admission.MutationInterface.
func (l *lazy) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p, err := l.needed()
	if m, mutates := p.(admission.MutationInterface); mutates && err == nil {
		return m.Admit(ctx, a, o)
	}
	return err
}

// Validate implements admission.ValidationInterface.
func (l *lazy) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p, err := l.needed()
	if v, validates := p.(admission.ValidationInterface); validates && err == nil {
		return v.Validate(ctx, a, o)
	}
	return err
}

// needed returns the plugin, or nil while nothing configures it.
func (l *lazy) needed() (admission.Interface, error) {
	if l.table.Empty() {
		return nil, nil
	}
	if p := l.plugin.Load(); p != nil {
		return *p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.plugin.Load(); p != nil {
		return *p, nil
	}
	p, err := l.build()
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("admission by %s: %w", l.table.Kind().Plural, err))
	}
	l.plugin.Store(&p)
	return p, nil
}
