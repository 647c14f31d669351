package pods

import (
	"context"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestAnAgentThatEndsAsItBegins: informers that have ended before the manager follows them are no error.
func TestAnAgentThatEndsAsItBegins(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	informer := factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	cancel()
	factory.Shutdown()
	m := New(Config{})
	if err := m.Run(ctx, informer); err != nil {
		t.Error(err)
	}
	if err := m.Run(t.Context(), informer); err == nil {
		t.Error("an informer that has ended alone is no error")
	}
}
