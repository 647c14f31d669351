package scheduler

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// bindLimit bounds the bindings under way at once; the scheduling loop waits when it is reached. Many at once is what
// lets the store commit them together.
const bindLimit = 64

// binder writes bindings concurrently and settles what was assumed.
type binder struct {
	scheduler *scheduler
	slots     chan struct{}
	children  sync.WaitGroup
}

func newBinder(s *scheduler) *binder {
	return &binder{scheduler: s, slots: make(chan struct{}, bindLimit)}
}

// bind starts one binding; it blocks while bindLimit of them are under way.
func (b *binder) bind(ctx context.Context, t task, node string) {
	b.slots <- struct{}{}
	b.children.Go(func() {
		defer func() { <-b.slots }()
		if err := b.write(reconcile.WithCause(ctx, t.pod), t, node); err != nil {
			b.failed(ctx, t, node, err)
			return
		}
		b.scheduler.queue.done(t.entry)
		b.scheduler.report.scheduled(t.pod.Pod, node)
	})
}

// wait returns when no binding is under way.
func (b *binder) wait() {
	b.children.Wait()
}

func (b *binder) write(ctx context.Context, t task, node string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.pod.Namespace, Name: t.pod.Name, UID: t.pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	return b.scheduler.client.CoreV1().Pods(t.pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

// failed takes the assumption back, unless the binding did happen and only its answer was lost.
func (b *binder) failed(ctx context.Context, t task, node string, err error) {
	s := b.scheduler
	if ctx.Err() != nil {
		return // the term is over; the next one starts from what the watch says
	}
	if apierrors.IsNotFound(err) {
		s.forget(t)
		s.queue.remove(t.pod.UID)
		return
	}
	if !apierrors.IsConflict(err) && b.happened(ctx, t, node) {
		s.queue.done(t.entry)
		return
	}
	s.log.Warn("binding failed", "pod", t.pod.Namespace+"/"+t.pod.Name, "node", node, "error", err)
	s.forget(t)
	s.queue.retry(t.entry)
	s.catchUp(t.pod.Pod)
}

// happened asks the server whether the pod is on the node after all.
func (b *binder) happened(ctx context.Context, t task, node string) bool {
	pod, err := b.scheduler.client.CoreV1().Pods(t.pod.Namespace).Get(ctx, t.pod.Name, metav1.GetOptions{})
	return err == nil && pod.UID == t.pod.UID && pod.Spec.NodeName == node
}
