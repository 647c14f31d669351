package controllers

import (
	"github.com/setpoint-io/setpoint/controllers/addressrepair"
	"github.com/setpoint-io/setpoint/controllers/apiservice"
	"github.com/setpoint-io/setpoint/controllers/bootstraptoken"
	"github.com/setpoint-io/setpoint/controllers/certificatecleaner"
	"github.com/setpoint-io/setpoint/controllers/certificates"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/crdstatus"
	"github.com/setpoint-io/setpoint/controllers/cronjob"
	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/disruption"
	"github.com/setpoint-io/setpoint/controllers/dnsservice"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/ephemeralvolume"
	"github.com/setpoint-io/setpoint/controllers/eventttl"
	"github.com/setpoint-io/setpoint/controllers/flowschema"
	"github.com/setpoint-io/setpoint/controllers/garbage"
	"github.com/setpoint-io/setpoint/controllers/gateway"
	"github.com/setpoint-io/setpoint/controllers/ingress"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/controllers/legacytoken"
	"github.com/setpoint-io/setpoint/controllers/loadbalancer"
	"github.com/setpoint-io/setpoint/controllers/localvolume"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodeipam"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/podautoscaler"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/controllers/rootca"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/controllers/servicecidr"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
	"github.com/setpoint-io/setpoint/controllers/storagemigration"
	"github.com/setpoint-io/setpoint/controllers/storageprotection"
	"github.com/setpoint-io/setpoint/controllers/trustbundle"
	"github.com/setpoint-io/setpoint/controllers/ttl"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
	"github.com/setpoint-io/setpoint/controllers/unattended"
	"github.com/setpoint-io/setpoint/controllers/volumeattach"
	"github.com/setpoint-io/setpoint/controllers/volumebinder"
	"github.com/setpoint-io/setpoint/controllers/volumeexpander"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// all lists the controllers. A new one is a folder and a line here.
func all(cfg Config) []reconcile.Controller {
	return []reconcile.Controller{
		clusterobjects.New(cfg.Objects),
		serviceaccount.New(),
		legacytoken.New(cfg.Tokens, cfg.RootCA),
		legacytoken.NewCleaner(),
		bootstraptoken.New(cfg.ClusterInfo),
		flowschema.New(),
		certificates.New(cfg.Authority),
		certificatecleaner.New(),
		certificatecleaner.NewOfPods(),
		clusterroleaggregation.New(),
		rootca.New(cfg.RootCA),
		trustbundle.New(cfg.RootCA),
		ttl.New(),
		nodeipam.New(cfg.PodNetwork),
		nodelifecycle.New(cfg.Liveness),
		deployment.New(),
		replicaset.New(),
		replicationcontroller.New(),
		daemonset.New(),
		statefulset.New(),
		job.New(),
		cronjob.New(),
		ttlafterfinished.New(),
		endpoints.New(),
		disruption.New(),
		ingress.New(),
		gateway.New(len(cfg.LoadBalancers.Pool) > 0),
		endpointslice.New(),
		loadbalancer.New(cfg.LoadBalancers),
		dnsservice.New(cfg.WithoutDNS, servicerange.DNS(cfg.PodNetwork.Services)),
		servicecidr.New(cfg.Monitors),
		addressrepair.New(),
		endpointslicemirroring.New(),
		podautoscaler.New(),
		podgc.New(),
		eventttl.New(),
		garbage.New(cfg.Monitors),
		namespace.New(),
		crdstatus.New(),
		storageprotection.New(),
		storagemigration.New(),
		volumebinder.New(),
		volumeattach.New(),
		ephemeralvolume.New(),
		resourceclaim.New(),
		devicetainteviction.New(),
		volumeexpander.New(),
		localvolume.New(localvolume.Config{Class: cfg.LocalVolumes}),
		apiservice.New(cfg.LocalAPIs, cfg.Prober),
		unattended.New(),
	}
}

// Names are what the controllers are called: as upstream calls its own.
func Names() (names []string) {
	for _, c := range all(Config{}) {
		names = append(names, c.Name)
	}
	return names
}

// Reads are what the controllers read from caches. A server keeps these, whether it leads or not.
func Reads() []reconcile.Read {
	var reads []reconcile.Read
	for _, c := range all(Config{}) {
		reads = append(reads, c.Reads...)
	}
	return reads
}
