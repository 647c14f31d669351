package explain

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// rollout is a Deployment of three with an old ReplicaSet, a new one and the pods of that.
func rollout(progress appsv1.DeploymentCondition, pods ...*corev1.Pod) *scene {
	at := func(set *appsv1.ReplicaSet, revision string) *appsv1.ReplicaSet {
		set.Annotations, set.Spec.Replicas = map[string]string{revisionAnnotation: revision}, ptr.To[int32](3)
		return ownedBy(set, Deployments, "web")
	}
	d := &appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)}}
	d.Annotations = map[string]string{revisionAnnotation: "2"}
	progress.Type = appsv1.DeploymentProgressing
	d.Status.Conditions = []appsv1.DeploymentCondition{progress}
	before := at(&appsv1.ReplicaSet{ObjectMeta: meta("web-1")}, "1")
	before.Status.Replicas = 3
	s := (&scene{}).with(Nodes, aNode("a", true)).with(Deployments, d).with(ReplicaSets, before, at(&appsv1.ReplicaSet{ObjectMeta: meta("web-2")}, "2")).
		with(Budgets, &policyv1.PodDisruptionBudget{ObjectMeta: meta("b")})
	for _, pod := range pods {
		s.with(Pods, ownedBy(pod, ReplicaSets, "web-2"))
	}
	return s
}

var (
	progressing = appsv1.DeploymentCondition{Status: corev1.ConditionTrue, Message: "is progressing"}
	tooLate     = appsv1.DeploymentCondition{Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out"}
	theRollout  = [][2]string{{"ReplicaSet/web-1", "earlier revision"}, {"PodDisruptionBudget/b", "no rollout"}}
)

// held is a rollout with one cause.
func held(s *scene, guilty Object, what, command string) wanted {
	return wanted{scene: s, of: Deployments.Named("n", "web"), guilty: guilty, what: what, command: command, innocent: theRollout}
}

// refusing gives the newest ReplicaSet the condition of a refusal.
func refusing(s *scene, message string) *scene {
	set := s.Get(ReplicaSets.Named("n", "web-2")).(*appsv1.ReplicaSet)
	set.Status.Replicas = 1
	set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: message}}
	return s
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waitingFor(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", Image: "i:v9", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func workloadScenes() map[string]func() wanted {
	return map[string]func() wanted{
		"failing readiness": func() wanted {
			bad := unready("bad", running("c"))
			event := &corev1.Event{ObjectMeta: meta("e"), Type: "Warning", Reason: "Unhealthy", Message: "HTTP 500", InvolvedObject: corev1.ObjectReference{UID: "Pod-bad"}}
			w := held(rollout(progressing, bad, aPod("good")).with(Events, event), Pods.Named("n", "bad"), "container c runs, and its readiness probe does not succeed: HTTP 500", "")
			w.innocent = append(w.innocent, [2]string{"Pod/good", "ready"}, [2]string{"Pod/bad", "container sidecar is ready"}, [2]string{"Node/a", "Ready"})
			return w
		},
		"image": func() wanted {
			return held(rollout(progressing, unready("bad", waitingFor("ImagePullBackOff", "no such image"))), Pods.Named("n", "bad"), "container c waits: ImagePullBackOff: no such image", "")
		},
		"crash loop": func() wanted {
			status := waitingFor("CrashLoopBackOff", "back-off")
			status.RestartCount, status.LastTerminationState.Terminated = 4, &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}
			return held(rollout(progressing, unready("bad", status)), Pods.Named("n", "bad"), "it ended with code 3, Error, and was restarted 4 times", "")
		},
		"progress deadline": func() wanted {
			return held(rollout(tooLate, unready("bad", running("c"))), Deployments.Named("n", "web"), "ProgressDeadlineExceeded", "kubectl -n n rollout undo deployments.apps web")
		},
		"paused": func() wanted {
			s := rollout(progressing)
			s.Get(Deployments.Named("n", "web")).(*appsv1.Deployment).Spec.Paused = true
			return held(s, Deployments.Named("n", "web"), "paused", "kubectl -n n rollout resume deployments.apps web")
		},
		"node away": func() wanted {
			s := rollout(progressing, unready("bad", running("c")))
			s.Get(Nodes.Named("", "a")).(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
			return held(s, Nodes.Named("", "a"), "the node is not Ready: NodeStatusUnknown: silent", "")
		},
		"quota": func() wanted {
			s := refusing(rollout(progressing, aPod("one")), `pods "x" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=1,requests.cpu=1, limited: pods=2,requests.cpu=9`)
			roomy := &corev1.ResourceQuota{ObjectMeta: meta("roomy")}
			roomy.Status.Hard = corev1.ResourceList{"services": resource.MustParse("5")}
			w := held(s.with(Quotas, roomy, &corev1.ResourceQuota{ObjectMeta: meta("q")}), Quotas.Named("n", "q"), "used up",
				`kubectl -n n patch resourcequotas q --type=merge -p '{"spec":{"hard":{"pods":"3"}}}'`)
			w.innocent = append(w.innocent, [2]string{"ResourceQuota/roomy", "0 of 5 services are used"})
			return w
		},
		"service account": func() wanted {
			return held(refusing(rollout(progressing), `error looking up service account n/x: serviceaccount "x" not found`), ServiceAccounts.Named("n", "x"), "does not exist",
				"kubectl -n n create serviceaccount x")
		},
		"webhook that is away": func() wanted {
			w := withWebhooks(`failed calling webhook "w2.example.com": connection refused`)
			w.what = "cannot be called"
			w.command = `kubectl patch validatingwebhookconfigurations.admissionregistration.k8s.io guard --type=json -p ` +
				`'[{"op":"test","path":"/webhooks/1/name","value":"w2.example.com"},{"op":"replace","path":"/webhooks/1/failurePolicy","value":"Ignore"}]'`
			return w
		},
		"webhook that refuses": func() wanted { return withWebhooks(`admission webhook "w2.example.com" denied the request: no`) },
		"StatefulSet, by its event": func() wanted {
			set := &appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)}}
			event := &corev1.Event{ObjectMeta: meta("e"), Type: "Warning", Reason: "FailedCreate", Message: `serviceaccount "x" not found`, InvolvedObject: corev1.ObjectReference{UID: "StatefulSet-db"}}
			s := (&scene{}).with(StatefulSets, set).with(Events, event).with(Pods, ownedBy(aPod("db-0"), StatefulSets, "db")).with(Nodes, aNode("a", true)).
				with(Quotas, &corev1.ResourceQuota{ObjectMeta: meta("q")})
			return wanted{
				scene: s, of: StatefulSets.Named("n", "db"), guilty: ServiceAccounts.Named("n", "x"), command: "kubectl -n n create serviceaccount x",
				innocent: [][2]string{{"Pod/db-0", "ready"}, {"ResourceQuota/q", "refused nothing"}},
			}
		},
		"DaemonSet, by its loop": func() wanted {
			set := &appsv1.DaemonSet{ObjectMeta: meta("ds"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, CurrentNumberScheduled: 1}}
			s := (&scene{failing: map[Object][]Failure{DaemonSets.Named("n", "ds"): {{"daemonset-controller", "no way"}}}}).with(DaemonSets, set).
				with(Pods, ownedBy(aPod("ds-0"), DaemonSets, "ds")).with(Quotas, &corev1.ResourceQuota{ObjectMeta: meta("q")})
			return wanted{
				scene: s, of: DaemonSets.Named("n", "ds"), guilty: DaemonSets.Named("n", "ds"), what: "no way",
				innocent: [][2]string{{"Pod/ds-0", "ready"}, {"ResourceQuota/q", "refused nothing"}},
			}
		},
	}
}

// withWebhooks is a rollout that the second webhook of one of two configurations refuses.
func withWebhooks(message string) wanted {
	guard := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: unbound("guard"), Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "w1.example.com"}, {Name: "w2.example.com"}}}
	s := refusing(rollout(progressing), message).with(ValidatingWebhooks, guard, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: unbound("other")}).
		with(MutatingWebhooks, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: unbound("defaults")})
	w := held(s, ValidatingWebhooks.Named("", "guard"), "the webhook w2.example.com refuses", "")
	w.innocent = [][2]string{{"ValidatingWebhookConfiguration/other", "not the one"}, {"MutatingWebhookConfiguration/defaults", "not the one"}}
	return w
}

// aJob has one pod that has failed and one that has succeeded.
func aJob(change func(*batchv1.Job)) *scene {
	job := &batchv1.Job{ObjectMeta: meta("j"), Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](1), ActiveDeadlineSeconds: ptr.To[int64](9)}}
	job.Status.Failed = 2
	change(job)
	broken, done := ownedBy(aPod("broken"), Jobs, "j"), ownedBy(aPod("done"), Jobs, "j")
	broken.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"}}},
	}}
	done.Status.Phase = corev1.PodSucceeded
	return (&scene{}).with(Jobs, job).with(Pods, broken, done).with(Quotas, &corev1.ResourceQuota{ObjectMeta: meta("q")}, &corev1.ResourceQuota{ObjectMeta: meta("q2")})
}

func failedFor(reason string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: "because"}}
	}
}

func jobScenes() map[string]func() wanted {
	return map[string]func() wanted{
		"Job over its back-off limit": func() wanted {
			return wanted{
				scene: aJob(failedFor(batchv1.JobReasonBackoffLimitExceeded)), of: Jobs.Named("n", "j"), guilty: Jobs.Named("n", "j"),
				what: "(backoffLimit is 1, and 2 pods have failed)", command: "kubectl -n n delete jobs.batch j",
				innocent: [][2]string{{"Pod/done", "succeeded"}, {"ResourceQuota/q", "refused nothing"}, {"Job/j", "deadline has not passed"}},
			}
		},
		"its pod": func() wanted {
			w := jobScenes()["Job over its back-off limit"]()
			w.guilty, w.what, w.command = Pods.Named("n", "broken"), "container c ended with code 7 (Error)", ""
			return w
		},
		"Job over its deadline": func() wanted {
			w := jobScenes()["Job over its back-off limit"]()
			w.scene, w.what = aJob(failedFor(batchv1.JobReasonDeadlineExceeded)), "activeDeadlineSeconds is 9"
			w.innocent = w.innocent[:2]
			return w
		},
		"suspended Job": func() wanted {
			return wanted{
				scene: aJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }), of: Jobs.Named("n", "j"), guilty: Jobs.Named("n", "j"), what: "suspended",
				command:  `kubectl -n n patch jobs.batch j --type=merge -p '{"spec":{"suspend":false}}'`,
				innocent: [][2]string{{"ResourceQuota/q", "refused nothing"}, {"ResourceQuota/q2", "refused nothing"}},
			}
		},
	}
}

// TestFetchesAnImage: a pod whose last event says that an image is being fetched waits for that, and not when something came after it.
func TestFetchesAnImage(t *testing.T) {
	event := func(name, reason string, age time.Duration) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: meta(name), Type: corev1.EventTypeNormal, Reason: reason, Message: `Pulling image "shop:1"`,
			LastTimestamp: metav1.NewTime(now.Add(-age)), InvolvedObject: corev1.ObjectReference{UID: "Pod-p"},
		}
	}
	pod := aPod("p")
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
	}}
	s := (&scene{}).with(Pods, pod).with(Nodes, aNode("a", true)).with(Events, event("e1", "Scheduled", time.Minute), event("e2", "Pulling", 31*time.Second))
	name := Pods.Named("n", "p")
	if got := s.explain(t, name); len(got.Causes) != 1 || got.Causes[0].What != `its node fetches an image (31s ago: Pulling image "shop:1")` {
		t.Errorf("%+v", got)
	}
	if got := s.with(Events, event("e3", "Pulled", time.Second)).explain(t, name); len(got.Causes) != 0 {
		t.Errorf("%+v", got)
	}
}
