package controllers

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
)

// controller is one line of the list.
type controller struct {
	// component is the name that its events and logs carry.
	component string
	// run runs it for one term.
	run func(ctx context.Context, cfg Config, events record.EventRecorder) error
}

// all lists the controllers. A new one is a folder and a line here.
func all() []controller {
	return []controller{
		{"deployment-controller", runDeployment},
		{"replicaset-controller", runReplicaSet},
	}
}

// Warm creates every informer and index that the controllers read, so that a
// replica which does not lead keeps them filled. Call it before the factory is
// started.
func Warm(f informers.SharedInformerFactory) error {
	for _, warm := range []func(informers.SharedInformerFactory) error{
		deployment.Warm,
		replicaset.Warm,
	} {
		if err := warm(f); err != nil {
			return err
		}
	}
	return nil
}

func runDeployment(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return deployment.Run(ctx, deployment.Config{Client: cfg.Client, Informers: cfg.Informers, Events: events, Logger: cfg.Logger})
}

func runReplicaSet(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return replicaset.Run(ctx, replicaset.Config{Client: cfg.Client, Informers: cfg.Informers, Events: events, Logger: cfg.Logger})
}
