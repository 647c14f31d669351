package controllers

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/apiservice"
	"github.com/setpoint-io/setpoint/controllers/bootstraptoken"
	"github.com/setpoint-io/setpoint/controllers/certificates"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/crd"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/eventttl"
	"github.com/setpoint-io/setpoint/controllers/flowschema"
	"github.com/setpoint-io/setpoint/controllers/garbage"
	"github.com/setpoint-io/setpoint/controllers/legacytoken"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodeipam"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/rootca"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/controllers/storageprotection"
)

// controller is one line of the list.
type controller struct {
	// component is the name that its events and logs carry; upstream's, where
	// there is one.
	component string
	// warm creates the informers and indexes that it reads.
	warm func(informers.SharedInformerFactory) error
	// run runs it for one term.
	run func(ctx context.Context, cfg Config, events record.EventRecorder) error
}

// all lists the controllers. A new one is a folder and a line here.
func all() []controller {
	return []controller{
		{"cluster-objects-controller", nil, runClusterObjects},
		{"serviceaccount-controller", serviceaccount.Warm, runServiceAccount},
		{"tokens-controller", legacytoken.Warm, runLegacyToken},
		{"bootstrap-token-controller", nil, runBootstrapToken},
		{"flow-schema-controller", flowschema.Warm, runFlowSchema},
		{"certificate-controller", certificates.Warm, runCertificates},
		{"clusterrole-aggregation-controller", clusterroleaggregation.Warm, runClusterRoleAggregation},
		{"root-ca-cert-publisher", rootca.Warm, runRootCA},
		{"node-ipam-controller", nodeipam.Warm, runNodeIPAM},
		{"node-controller", nodelifecycle.Warm, runNodeLifecycle},
		{"deployment-controller", deployment.Warm, runDeployment},
		{"replicaset-controller", replicaset.Warm, runReplicaSet},
		{"replication-controller", replicationcontroller.Warm, runReplicationController},
		{"endpoint-slice-controller", endpointslice.Warm, runEndpointSlice},
		{"pod-garbage-collector", podgc.Warm, runPodGC},
		{"event-ttl-controller", eventttl.Warm, runEventTTL},
		{"garbage-collector-controller", nil, runGarbage},
		{"namespace-controller", namespace.Warm, runNamespace},
		{"crd-controller", nil, runCRD},
		{"storage-protection-controller", storageprotection.Warm, runStorageProtection},
		{"apiservice-controller", apiservice.Warm, runAPIService},
	}
}

// Warm creates every informer and index that the controllers read, so that a
// replica which does not lead keeps them filled. Call it before the factory is
// started.
func Warm(f informers.SharedInformerFactory) error {
	for _, c := range all() {
		if c.warm == nil {
			continue
		}
		if err := c.warm(f); err != nil {
			return err
		}
	}
	return nil
}

func runClusterObjects(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	if cfg.Objects == nil {
		return nil
	}
	return clusterobjects.Run(ctx, clusterobjects.Config{Client: cfg.Client, Objects: cfg.Objects, Logger: cfg.Logger})
}

func runServiceAccount(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return serviceaccount.Run(ctx, serviceaccount.Config{Client: cfg.Client, Informers: cfg.Informers, Logger: cfg.Logger})
}

func runLegacyToken(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	if cfg.Tokens == nil {
		return nil
	}
	return legacytoken.Run(ctx, legacytoken.Config{Client: cfg.Client, Informers: cfg.Informers, Tokens: cfg.Tokens, RootCA: cfg.RootCA, Logger: cfg.Logger})
}

func runBootstrapToken(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return bootstraptoken.Run(ctx, bootstraptoken.Config{Client: cfg.Client, ClusterInfo: cfg.ClusterInfo, Logger: cfg.Logger})
}

func runFlowSchema(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return flowschema.Run(ctx, flowschema.Config{Client: cfg.Client, Informers: cfg.Informers, Logger: cfg.Logger})
}

func runCertificates(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	if cfg.Signer == nil {
		return nil
	}
	return certificates.Run(ctx, certificates.Config{Client: cfg.Client, Informers: cfg.Informers, Signer: cfg.Signer, Logger: cfg.Logger})
}

func runClusterRoleAggregation(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return clusterroleaggregation.Run(ctx, clusterroleaggregation.Config{Client: cfg.Client, Informers: cfg.Informers, Logger: cfg.Logger})
}

func runRootCA(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return rootca.Run(ctx, rootca.Config{Client: cfg.Client, Informers: cfg.Informers, Bundles: cfg.Bundles, Bundle: cfg.RootCA, Logger: cfg.Logger})
}

func runNodeIPAM(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return nodeipam.Run(ctx, nodeipam.Config{Client: cfg.Client, Informers: cfg.Informers, PodCIDR: cfg.PodCIDR, Events: events, Logger: cfg.Logger})
}

func runNodeLifecycle(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return nodelifecycle.Run(ctx, nodelifecycle.Config{Client: cfg.Client, Informers: cfg.Informers, Liveness: cfg.Liveness, Events: events, Logger: cfg.Logger})
}

func runDeployment(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return deployment.Run(ctx, deployment.Config{Client: cfg.Client, Informers: cfg.Informers, Events: events, Logger: cfg.Logger})
}

func runReplicaSet(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return replicaset.Run(ctx, replicaset.Config{Client: cfg.Client, Informers: cfg.Informers, Events: events, Logger: cfg.Logger})
}

func runReplicationController(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return replicationcontroller.Run(ctx, replicationcontroller.Config{Client: cfg.Client, Informers: cfg.Informers, Events: events, Logger: cfg.Logger})
}

func runEndpointSlice(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return endpointslice.Run(ctx, endpointslice.Config{Client: cfg.Client, Informers: cfg.Informers, Events: events, Logger: cfg.Logger})
}

func runPodGC(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return podgc.Run(ctx, podgc.Config{Client: cfg.Client, Informers: cfg.Informers, Logger: cfg.Logger})
}

func runEventTTL(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return eventttl.Run(ctx, eventttl.Config{Client: cfg.Client, Informers: cfg.Informers, Logger: cfg.Logger})
}

func runGarbage(ctx context.Context, cfg Config, events record.EventRecorder) error {
	return garbage.Run(ctx, garbage.Config{Metadata: cfg.Metadata, Discovery: cfg.Discovery, Monitors: cfg.Monitors, Events: events, Logger: cfg.Logger})
}

func runNamespace(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return namespace.Run(ctx, namespace.Config{Client: cfg.Client, Metadata: cfg.Metadata, Discovery: cfg.Discovery, Informers: cfg.Informers, Logger: cfg.Logger})
}

func runCRD(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return crd.Run(ctx, crd.Config{Client: cfg.Extensions, Metadata: cfg.Metadata, Definitions: cfg.Definitions, Logger: cfg.Logger})
}

func runAPIService(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return apiservice.Run(ctx, apiservice.Config{
		Client: cfg.Aggregator, Informers: cfg.Informers, APIServices: cfg.APIServices, Definitions: cfg.Definitions,
		Local: cfg.LocalAPIs, Prober: cfg.Prober, Logger: cfg.Logger,
	})
}

func runStorageProtection(ctx context.Context, cfg Config, _ record.EventRecorder) error {
	return storageprotection.Run(ctx, storageprotection.Config{Client: cfg.Client, Informers: cfg.Informers, Logger: cfg.Logger})
}
