package controllers

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var appLabels = map[string]string{"app": "web"}

func web() metav1.ObjectMeta { return named("web") }

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: appLabels}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: appLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

// added is a step that adds objects.
func added(objects ...runtime.Object) func(w *reconciletest.World) {
	return func(w *reconciletest.World) {
		for _, o := range objects {
			reconciletest.Add(w, o.DeepCopyObject())
		}
	}
}

// active are the pods that count.
func active(w *reconciletest.World) (pods []corev1.Pod) {
	for _, p := range w.Pods("ns") {
		if podstate.Active(&p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// atMost is broken by more pods than the present step and the last one allow together: what the last one began may still go on.
func atMost(limits ...int) func(w *reconciletest.World, step int) string {
	return func(w *reconciletest.World, step int) string {
		limit := max(limits[step], limits[max(0, step-1)])
		if n := len(active(w)); n > limit {
			return fmt.Sprintf("%d pods, at most %d are allowed", n, limit)
		}
		return ""
	}
}

func deploymentOf(replicas int32, strategy appsv1.DeploymentStrategyType) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: web(), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: appLabels}, Template: template("v1"),
		Strategy: appsv1.DeploymentStrategy{Type: strategy}, RevisionHistoryLimit: new(int32(1)),
	}}
	if strategy == appsv1.RollingUpdateDeploymentStrategyType {
		one := intstr.FromInt32(1)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &one}
	}
	return d
}

func rolled(image string, replicas int32) func(w *reconciletest.World) {
	return func(w *reconciletest.World) {
		reconciletest.Edit(w, &appsv1.Deployment{ObjectMeta: web()}, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image, d.Spec.Replicas = image, &replicas
		})
	}
}

// oneTemplate is broken when pods of two templates run at once.
func oneTemplate(w *reconciletest.World, _ int) string {
	images := map[string]bool{}
	for _, p := range w.Pods("ns") {
		if !podstate.Finished(&p) {
			images[p.Spec.Containers[0].Image] = true
		}
	}
	if len(images) > 1 {
		return fmt.Sprintf("pods of %v run at once", images)
	}
	return ""
}

var rollouts = []scenario{{
	name:        "rollout",
	controllers: []string{"deployment-controller", "replicaset-controller"},
	steps: []func(w *reconciletest.World){
		added(deploymentOf(4, appsv1.RollingUpdateDeploymentStrategyType)), rolled("v2", 4), rolled("v3", 6), rolled("v3", 2),
	},
	holds: atMost(5, 5, 7, 3),
}, {
	name:        "rollouts that overtake each other",
	controllers: []string{"deployment-controller", "replicaset-controller"},
	steps: []func(w *reconciletest.World){
		added(deploymentOf(5, appsv1.RollingUpdateDeploymentStrategyType)),
		func(w *reconciletest.World) {
			rolled("v2", 5)(w)
			w.Settle()
			rolled("v3", 3)(w)
			w.Settle()
			w.RunPods(true)
			rolled("v1", 5)(w)
		},
	},
	holds: atMost(6, 6),
	ends:  func(line string) bool { return strings.HasPrefix(line, "pods ") }, // which revisions there were differs
}, {
	name:        "recreate",
	controllers: []string{"deployment-controller", "replicaset-controller"},
	steps:       []func(w *reconciletest.World){added(deploymentOf(3, appsv1.RecreateDeploymentStrategyType)), rolled("v2", 3)},
	holds:       oneTemplate,
}, {
	name:        "deletion of a Deployment",
	controllers: []string{"deployment-controller", "replicaset-controller", "garbage-collector-controller"},
	steps: []func(w *reconciletest.World){
		added(deploymentOf(3, appsv1.RollingUpdateDeploymentStrategyType)),
		func(w *reconciletest.World) { w.Delete(&appsv1.Deployment{ObjectMeta: web()}) },
	},
	holds: atMost(4, 4),
}, {
	name:        "replication controller",
	controllers: []string{"replication-controller"},
	steps: []func(w *reconciletest.World){
		added(&corev1.ReplicationController{ObjectMeta: web(), Spec: corev1.ReplicationControllerSpec{
			Replicas: new(int32(4)), Selector: appLabels, Template: new(template("v1"))}}),
		func(w *reconciletest.World) {
			reconciletest.Edit(w, &corev1.ReplicationController{ObjectMeta: web()}, func(rc *corev1.ReplicationController) {
				rc.Spec.Replicas = new(int32(2))
			})
		},
		func(w *reconciletest.World) { p := active(w)[0]; w.Delete(&p) },
	},
	holds: atMost(4, 2, 2),
}}

func statefulSetOf(replicas int32, policy appsv1.PodManagementPolicyType) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: web(), Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: appLabels}, Template: template("v1"),
		PodManagementPolicy: policy, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))}},
		RevisionHistoryLimit: new(int32(10)),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}}},
		PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType},
	}}
}

func resetSet(image string, replicas int32) func(w *reconciletest.World) {
	return func(w *reconciletest.World) {
		reconciletest.Edit(w, &appsv1.StatefulSet{ObjectMeta: web()}, func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image, s.Spec.Replicas = image, &replicas
		})
	}
}

// inOrder is broken by a pod that runs before all of lower ordinals are ready, in a set that is never scaled down.
func inOrder(w *reconciletest.World, step int) string {
	if step > 0 {
		return ""
	}
	ready := map[string]bool{}
	for _, p := range w.Pods("ns") {
		ready[p.Name] = podstate.Ready(&p)
	}
	for i := 1; i < 3; i++ {
		_, there := ready[fmt.Sprintf("web-%d", i)]
		if before := fmt.Sprintf("web-%d", i-1); there && !ready[before] {
			return fmt.Sprintf("web-%d is there before %s is ready", i, before)
		}
	}
	return ""
}

var statefulSets = []scenario{{
	name:        "ordered set",
	controllers: []string{"statefulset-controller"},
	steps: []func(w *reconciletest.World){
		added(statefulSetOf(3, appsv1.OrderedReadyPodManagement)), resetSet("v2", 3), resetSet("v2", 1),
	},
	holds: inOrder,
}, {
	name:        "parallel set",
	controllers: []string{"statefulset-controller"},
	steps: []func(w *reconciletest.World){
		added(statefulSetOf(4, appsv1.ParallelPodManagement)), resetSet("v2", 4), resetSet("v3", 2),
	},
	holds: atMost(4, 4, 4),
}}

// daemonSteps run a set on nodes of which one comes and one goes.
var daemonSteps = []func(w *reconciletest.World){
	func(w *reconciletest.World) {
		for _, name := range []string{"node-0", "node-1", "node-2"} {
			reconciletest.Add(w, readyNode(name))
		}
		reconciletest.Add(w, &appsv1.DaemonSet{ObjectMeta: web(), Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: appLabels}, Template: template("v1"), RevisionHistoryLimit: new(int32(10)),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(0))}},
		}})
	},
	func(w *reconciletest.World) {
		reconciletest.Edit(w, &appsv1.DaemonSet{ObjectMeta: web()}, func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "v2" })
	},
	func(w *reconciletest.World) {
		reconciletest.Add(w, readyNode("node-3"))
		w.Delete(readyNode("node-0"))
		for _, p := range w.Pods("ns") {
			if nodeOf(&p) == "node-0" {
				w.RemovePod(&p)
			}
		}
	},
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// nodeOf is where a pod runs, or where its DaemonSet wants it.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if p.Spec.Affinity == nil {
		return "node-0"
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// runWherePinned runs every pod on the node that it is for, if there is one.
func runWherePinned(w *reconciletest.World) {
	there := map[string]bool{}
	for _, n := range w.Objects()[corev1.SchemeGroupVersion.WithResource("nodes")] {
		there[n.(*corev1.Node).Name] = true
	}
	for _, p := range w.Pods("ns") {
		if p.DeletionTimestamp != nil {
			w.RemovePod(&p)
			continue
		}
		if !there[nodeOf(&p)] {
			continue
		}
		reconciletest.Edit(w, &p, func(p *corev1.Pod) {
			p.Spec.NodeName = nodeOf(p)
			reconciletest.SetReady(p, true)
		})
	}
}

// onePerNode is broken by two pods of a DaemonSet on one node.
func onePerNode(w *reconciletest.World, _ int) string {
	on := map[string]int{}
	for _, p := range active(w) {
		if on[nodeOf(&p)]++; on[nodeOf(&p)] > 1 {
			return "two pods on " + nodeOf(&p)
		}
	}
	return ""
}

func jobOf(spec batchv1.JobSpec) batchv1.JobSpec {
	spec.Template = template("v1")
	spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Suspend, spec.Selector, spec.ManualSelector = new(false), &metav1.LabelSelector{MatchLabels: appLabels}, new(true)
	spec.PodReplacementPolicy = new(batchv1.TerminatingOrFailed)
	if spec.BackoffLimit == nil {
		spec.BackoffLimit = new(int32(6))
	}
	if spec.CompletionMode == nil {
		spec.CompletionMode = new(batchv1.NonIndexedCompletion)
	}
	return spec
}

// finishPods ends every pod that ran since the last turn: those of index 1 fail, the others succeed.
func finishPods(w *reconciletest.World) {
	for _, p := range w.Pods("ns") {
		switch {
		case p.DeletionTimestamp != nil && len(p.Finalizers) == 0:
			w.RemovePod(&p)
		case podstate.Finished(&p):
		case p.Spec.NodeName == "":
			reconciletest.Edit(w, &p, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning })
		case p.Annotations[batchv1.JobCompletionIndexAnnotation] == "1":
			end(w, &p, corev1.PodFailed)
		default:
			end(w, &p, corev1.PodSucceeded)
		}
	}
}

func end(w *reconciletest.World, p *corev1.Pod, phase corev1.PodPhase) {
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	reconciletest.Edit(w, p, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.ContainerStatuses = phase, []corev1.ContainerStatus{{Name: "c", State: done}}
	})
}

var jobs = []scenario{{
	name:        "job",
	controllers: []string{"job-controller"},
	steps: []func(w *reconciletest.World){added(&batchv1.Job{ObjectMeta: web(), Spec: jobOf(batchv1.JobSpec{
		Completions: new(int32(5)), Parallelism: new(int32(2))})})},
	machines: finishPods,
	holds:    atMost(2),
}, {
	name:        "job with an index that fails",
	controllers: []string{"job-controller"},
	steps: []func(w *reconciletest.World){added(&batchv1.Job{ObjectMeta: web(), Spec: jobOf(batchv1.JobSpec{
		Completions: new(int32(3)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimitPerIndex: new(int32(1)), MaxFailedIndexes: new(int32(3)), BackoffLimit: new(int32(100))})})},
	machines: finishPods,
	holds:    atMost(2),
}, {
	name:        "job that goes when it is done",
	controllers: []string{"job-controller", "ttl-after-finished-controller"},
	steps: []func(w *reconciletest.World){added(&batchv1.Job{ObjectMeta: web(), Spec: jobOf(batchv1.JobSpec{
		Completions: new(int32(2)), Parallelism: new(int32(2)), TTLSecondsAfterFinished: new(int32(20))})})},
	machines: finishPods,
	holds:    atMost(2),
}, {
	name:        "suspended job",
	controllers: []string{"job-controller"},
	steps: []func(w *reconciletest.World){
		added(&batchv1.Job{ObjectMeta: web(), Spec: jobOf(batchv1.JobSpec{Completions: new(int32(30)), Parallelism: new(int32(3))})}),
		func(w *reconciletest.World) {
			reconciletest.Edit(w, &batchv1.Job{ObjectMeta: web()}, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		},
	},
	machines: func(w *reconciletest.World) { w.RunPods(true) },
	holds:    atMost(3, 3),
}, {
	name:        "cron job",
	controllers: []string{"cronjob-controller", "job-controller", "garbage-collector-controller"},
	steps: []func(w *reconciletest.World){
		added(&batchv1.CronJob{ObjectMeta: web(), Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent, Suspend: new(false),
			SuccessfulJobsHistoryLimit: new(int32(1)), FailedJobsHistoryLimit: new(int32(1)),
			JobTemplate: batchv1.JobTemplateSpec{Spec: jobOf(batchv1.JobSpec{Completions: new(int32(1)), Parallelism: new(int32(1))})}}}),
		func(*reconciletest.World) {},
		func(w *reconciletest.World) {
			reconciletest.Edit(w, &batchv1.CronJob{ObjectMeta: web()}, func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) })
		},
	},
	machines: finishPods,
	holds:    oneRuns,
}}

// oneRuns is broken by two Jobs that are not done, which the CronJob forbids.
func oneRuns(w *reconciletest.World, _ int) string {
	var running []string
	for _, o := range w.Objects()[batchv1.SchemeGroupVersion.WithResource("jobs")] {
		if j := o.(*batchv1.Job); j.Status.CompletionTime == nil && j.DeletionTimestamp == nil {
			running = append(running, j.Name)
		}
	}
	if len(running) > 1 {
		return "these Jobs run at once: " + strings.Join(running, ", ")
	}
	return ""
}
