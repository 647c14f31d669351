package setpoint

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac/policy"
	"github.com/setpoint-io/setpoint/controllers/kubernetesservice"
)

// bootstrapRetryInterval is how long a failed bootstrap waits for the next try.
const bootstrapRetryInterval = time.Second

var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// until repeats what may fail for a moment, such as a write during an election.
// It returns false when ctx ended first.
func (l *loops) until(ctx context.Context, what string, do func(context.Context) error) bool {
	for {
		err := do(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		l.server.config.Logger.Warn("not there yet", "what", what, "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(bootstrapRetryInterval):
		}
	}
}

// ensureNamespaces makes the namespaces that every cluster has; the control loops
// write to some of them.
func ensureNamespaces(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range systemNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// ensureRoles makes the default roles. The library that does it passes no context:
// without one of ours a server that stops alone would wait for a majority.
func (s *Server) ensureRoles(ctx context.Context, term uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := s.restConfig(serverUser, term)
	config.Transport = apiserver.EndingWith(ctx, config.Transport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return policy.Reconcile(ctx, client)
}

// publishAPI keeps the Service by which pods find the API, until ctx ends.
func (l *loops) publishAPI(ctx context.Context, client kubernetes.Interface) error {
	return kubernetesservice.Run(ctx, kubernetesservice.Config{
		Client: client, Informers: l.caches, TargetPort: DefaultPort, Logger: l.server.config.Logger,
		Servers: func() (all []kubernetesservice.Server) {
			for _, s := range l.server.servers() {
				all = append(all, kubernetesservice.Server{Endpoint: s.Endpoint, Addresses: s.Addresses})
			}
			return all
		},
	})
}
