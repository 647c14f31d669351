package differential

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	upstreamcronjob "k8s.io/kubernetes/pkg/controller/cronjob"
	upstreamdaemon "k8s.io/kubernetes/pkg/controller/daemon"
	upstreamdeployment "k8s.io/kubernetes/pkg/controller/deployment"
	upstreamtaints "k8s.io/kubernetes/pkg/controller/devicetainteviction"
	upstreamdisruption "k8s.io/kubernetes/pkg/controller/disruption"
	upstreamendpoint "k8s.io/kubernetes/pkg/controller/endpoint"
	upstreammirroring "k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	upstreamjob "k8s.io/kubernetes/pkg/controller/job"
	upstreampodgc "k8s.io/kubernetes/pkg/controller/podgc"
	upstreamreplicaset "k8s.io/kubernetes/pkg/controller/replicaset"
	upstreamresourceclaim "k8s.io/kubernetes/pkg/controller/resourceclaim"
	upstreamstatefulset "k8s.io/kubernetes/pkg/controller/statefulset"
	upstreamttl "k8s.io/kubernetes/pkg/controller/ttlafterfinished"

	"github.com/setpoint-io/setpoint/controllers/cronjob"
	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/disruption"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
)

// upstreamWorkers is how many keys of a controller upstream works on at a time, by default.
const upstreamWorkers = 5

// burst is upstream's bound of pods created or deleted in one pass of a ReplicaSet.
const burst = 500

// addressesMax is upstream's bound of addresses in a subset that is mirrored.
const addressesMax = 1000

// A side starts one implementation of the controllers of a kind over a world.
type side struct {
	name  string
	start func(ctx context.Context, t *testing.T, w *reconciletest.World)
}

func ours(controllers ...reconcile.Controller) side {
	return side{"setpoint", func(_ context.Context, _ *testing.T, w *reconciletest.World) {
		for _, c := range controllers {
			w.Run(c)
		}
	}}
}

// upstream makes a side of constructors that return what runs until its context ends.
func upstream(build ...func(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error)) side {
	return side{"upstream", func(ctx context.Context, t *testing.T, w *reconciletest.World) {
		for _, b := range build {
			run, err := b(ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				run(ctx, upstreamWorkers)
			}()
			t.Cleanup(func() { <-done })
		}
		w.Start()
		synctest.Wait()
	}}
}

func upstreamDeployment(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	apps := w.Informers.Apps().V1()
	c, err := upstreamdeployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), w.Informers.Core().V1().Pods(), w.Client)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func upstreamReplicaSet(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	return upstreamreplicaset.NewReplicaSetController(ctx, w.Informers.Apps().V1().ReplicaSets(), w.Informers.Core().V1().Pods(), w.Client, burst).Run, nil
}

func upstreamStatefulSet(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	apps, core := w.Informers.Apps().V1(), w.Informers.Core().V1()
	return upstreamstatefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
		apps.ControllerRevisions(), w.Client).Run, nil
}

func upstreamDaemonSet(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	apps, core := w.Informers.Apps().V1(), w.Informers.Core().V1()
	c, err := upstreamdaemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), w.Client,
		flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func upstreamJob(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	c, err := upstreamjob.NewController(ctx, w.Client, w.Informers.Core().V1().Pods(), w.Informers.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func upstreamCronJob(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	c, err := upstreamcronjob.NewControllerV2(ctx, w.Informers.Batch().V1().Jobs(), w.Informers.Batch().V1().CronJobs(), w.Client)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func upstreamTTL(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	return upstreamttl.New(ctx, w.Informers.Batch().V1().Jobs(), w.Client).Run, nil
}

func upstreamDisruption(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	core, apps := w.Informers.Core().V1(), w.Informers.Apps().V1()
	c := upstreamdisruption.NewDisruptionController(ctx, core.Pods(), w.Informers.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), w.Client, meta.NewDefaultRESTMapper(nil), nil, w.Client.Discovery())
	return c.Run, nil
}

func upstreamEndpoints(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	core := w.Informers.Core().V1()
	return upstreamendpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), w.Client, 0).Run, nil
}

func upstreamMirroring(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	core := w.Informers.Core().V1()
	return upstreammirroring.NewController(ctx, core.Endpoints(), w.Informers.Discovery().V1().EndpointSlices(), core.Services(), addressesMax, w.Client, 0).Run, nil
}

func upstreamClaims(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	resources := w.Informers.Resource().V1()
	c, err := upstreamresourceclaim.NewController(klog.FromContext(ctx), w.Client, w.Informers.Core().V1().Pods(),
		w.Informers.Scheduling().V1beta1().PodGroups(), resources.ResourceClaims(), resources.ResourceClaimTemplates())
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func upstreamTaints(_ context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	resources := w.Informers.Resource().V1()
	c := upstreamtaints.New(w.Client, w.Informers.Core().V1().Pods(), resources.ResourceClaims(), resources.ResourceSlices(),
		resources.DeviceTaintRules(), resources.DeviceClasses(), "device-taint-eviction-controller")
	return func(ctx context.Context, workers int) { _ = c.Run(ctx, workers) }, nil
}

func upstreamPodGC(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	core := w.Informers.Core().V1()
	c := upstreampodgc.NewPodGC(ctx, w.Client, core.Pods(), core.Nodes(), finishedKept)
	return func(ctx context.Context, _ int) { c.Run(ctx) }, nil
}

// none is for kinds without a status of their own, and for whole namespaces.
var none schema.GroupVersionResource

// kinds are the workloads that are compared.
var kinds = []kind{
	{"deployment", newDeployment, [2]side{ours(deployment.New(), replicaset.New()), upstream(upstreamDeployment, upstreamReplicaSet)}, appsv1.SchemeGroupVersion.WithResource("deployments")},
	{"replicaset", newReplicaSet, [2]side{ours(replicaset.New()), upstream(upstreamReplicaSet)}, appsv1.SchemeGroupVersion.WithResource("replicasets")},
	{"statefulset", newStatefulSet, [2]side{ours(statefulset.New()), upstream(upstreamStatefulSet)}, appsv1.SchemeGroupVersion.WithResource("statefulsets")},
	{"daemonset", newDaemonSet, [2]side{ours(daemonset.New()), upstream(upstreamDaemonSet)}, appsv1.SchemeGroupVersion.WithResource("daemonsets")},
	{"job", newJob, [2]side{ours(job.New()), upstream(upstreamJob)}, batchv1.SchemeGroupVersion.WithResource("jobs")},
	{"cronjob", newCronJob, [2]side{ours(cronjob.New()), upstream(upstreamCronJob)}, batchv1.SchemeGroupVersion.WithResource("cronjobs")},
	{"disruption", newDisruption, [2]side{ours(disruption.New()), upstream(upstreamDisruption)}, policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")},
	{"autoscaler", newAutoscaler, [2]side{ourAutoscaler(), upstream(upstreamAutoscaler)}, autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")},
	{"endpoints", newEndpoints, [2]side{ours(endpoints.New()), upstream(upstreamEndpoints)}, none},
	{"endpointslicemirroring", newMirror, [2]side{ours(endpointslicemirroring.New()), upstream(upstreamMirroring)}, none},
	{"ttlafterfinished", newTTL, [2]side{ours(ttlafterfinished.New()), upstream(upstreamTTL)}, none},
	{"podgc", newPodGC, [2]side{ours(podgc.Keeping(finishedKept)), upstream(upstreamPodGC)}, none},
	{"resourceclaim", newClaims, [2]side{ours(resourceclaim.New()), upstream(upstreamClaims)}, none},
	{"devicetainteviction", newTaints, [2]side{ours(devicetainteviction.New()), upstream(upstreamTaints)}, none},
}

// kind is a workload: how its worlds are made, and who is compared.
type kind struct {
	name  string
	make  func(g *generator) workload
	sides [2]side
	// watched is the kind whose statuses are compared, each that was published; empty where none is.
	watched schema.GroupVersionResource
}

func quiet() context.Context {
	return klog.NewContext(context.Background(), klog.LoggerWithName(klog.Background(), "upstream"))
}
