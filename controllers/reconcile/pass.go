package reconcile

import (
	"context"
	"fmt"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// passKey is the context key of the pass.
type passKey struct{}

// Pass is one call of a loop's Func: what its writes are accounted to.
type Pass struct {
	// Controller is the name of the controller.
	Controller string
	// Account is its service account in kube-system.
	Account string
	// Key tells what the pass is about; nil outside a loop's pass.
	Key func() string
	// wrote accounts a write, and did keeps what was done; nil outside a loop's pass.
	wrote func(object string, said uint64)
	did   func(line actions.Line)
}

// Wrote says that a write of the pass was accepted: to which object, and a hash of what was said of it.
func (p Pass) Wrote(object string, said uint64) {
	if p.wrote != nil {
		p.wrote(object, said)
	}
}

// Did says what was tried and what came of it.
func (p Pass) Did(line actions.Line) {
	if p.did != nil {
		p.did(line)
	}
}

// PassFrom returns the pass that ctx belongs to; ok is false outside of controllers.
func PassFrom(ctx context.Context) (pass Pass, ok bool) {
	pass, ok = ctx.Value(passKey{}).(Pass)
	return pass, ok
}

// withPass accounts what is written under the context to the controller and, if there is a key, to its pass.
func withPass(ctx context.Context, pass Pass) context.Context {
	return context.WithValue(ctx, passKey{}, pass)
}

// withPassOf accounts what is written under the context to this key.
func (l *loop[K]) withPassOf(ctx context.Context, key K, name func() string, t *tally) context.Context {
	if l.numbers == nil {
		return ctx
	}
	wrote := func(object string, said uint64) {
		t.wrote()
		if circle := l.numbers.Wrote(l.cfg.Env.Now(), name(), object, said); circle != nil {
			l.tellCircle(key, circle)
		}
	}
	return withPass(ctx, Pass{Controller: l.cfg.Env.name, Account: l.cfg.Env.account, Key: name, wrote: wrote, did: t.did})
}

// tellCircle says why the key rests, at its first circle, the second, the fourth and so on.
func (l *loop[K]) tellCircle(key K, circle *numbers.Circle) {
	if circle.Circles&(circle.Circles-1) != 0 {
		return
	}
	rest := circle.Until.Sub(l.cfg.Env.Now())
	l.log.Warn("writes in circles, rests", "key", fmt.Sprint(key), "object", circle.Object, "repeats", circle.Repeats, "for", rest)
	l.tell(key, reasonCircle, "%s wrote %s %d times within a minute and said the same as before: another may undo it. Next try in %v",
		l.cfg.Env.name, circle.Object, circle.Repeats, rest)
}
