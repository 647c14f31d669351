package explain

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func labelled(pod *corev1.Pod, labels map[string]string) *corev1.Pod {
	pod.Labels = labels
	return pod
}

// behindService is a Service of the pods with app=web and tier=front, on a named port.
func behindService(pods ...*corev1.Pod) *scene {
	service := &corev1.Service{ObjectMeta: meta("web")}
	service.Spec.Selector = map[string]string{"app": "web", "tier": "front"}
	service.Spec.Ports = []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}
	s := (&scene{}).with(Services, service).with(Nodes, aNode("a", true))
	for _, pod := range pods {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
		s.with(Pods, pod)
	}
	return s
}

func serviceScenes() map[string]func() wanted {
	front, others := map[string]string{"app": "web", "tier": "front"}, [][2]string{{"Pod/db", "does not select"}, {"Pod/good", "ready"}}
	return map[string]func() wanted{
		"Service whose pods have another label": func() wanted {
			s := behindService(labelled(aPod("db"), nil), labelled(aPod("near"), map[string]string{"app": "web", "tier": "back"}), labelled(aPod("far"), map[string]string{"app": "shop"}))
			return wanted{
				scene: s, of: Services.Named("n", "web"), guilty: Pods.Named("n", "near"), what: "has the label tier=back, where the selector has tier=front",
				innocent: [][2]string{{"Pod/db", "none of these labels"}, {"Pod/far", "none of these labels"}},
			}
		},
		"Service whose pod is not ready": func() wanted {
			bad := labelled(unready("bad", running("c")), front)
			return wanted{
				scene: behindService(labelled(aPod("db"), nil), labelled(aPod("good"), front), bad), of: Services.Named("n", "web"),
				guilty: Pods.Named("n", "bad"), what: "container c runs, and its readiness probe does not succeed", innocent: others,
			}
		},
		"Service whose port has no name in the pods": func() wanted {
			s := behindService(labelled(aPod("db"), nil), labelled(unready("bad", running("c")), front), labelled(aPod("good"), front))
			for _, name := range []string{"good", "bad"} {
				s.Get(Pods.Named("n", name)).(*corev1.Pod).Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP
			}
			return wanted{
				scene: s, of: Services.Named("n", "web"), guilty: Services.Named("n", "web"),
				what: `its port 80 leads to a container port named "http", and no container of its pods has one`, innocent: others,
			}
		},
	}
}

// cronScene is a CronJob with two Jobs, the newer of which has failed.
func cronScene(change func(*batchv1.CronJob)) *scene {
	cron := &batchv1.CronJob{ObjectMeta: meta("c")}
	change(cron)
	s := aJob(failedFor(batchv1.JobReasonBackoffLimitExceeded)).with(CronJobs, cron)
	job, before := s.Get(Jobs.Named("n", "j")).(*batchv1.Job), &batchv1.Job{ObjectMeta: meta("before")}
	job.CreationTimestamp, before.CreationTimestamp = metav1.NewTime(now), metav1.NewTime(now.Add(-time.Hour))
	ownedBy(job, CronJobs, "c")
	return s.with(Jobs, ownedBy(before, CronJobs, "c"))
}

func cronScenes() map[string]func() wanted {
	innocent := [][2]string{{"Job/before", "not the last one"}}
	return map[string]func() wanted{
		"suspended CronJob": func() wanted {
			s := cronScene(func(c *batchv1.CronJob) { c.Spec.Suspend = ptr.To(true) })
			s.Get(Jobs.Named("n", "j")).(*batchv1.Job).Status.Conditions[0].Type = batchv1.JobComplete
			return wanted{
				scene: s, of: CronJobs.Named("n", "c"), guilty: CronJobs.Named("n", "c"), what: "suspended",
				command:  `kubectl -n n patch cronjobs.batch c --type=merge -p '{"spec":{"suspend":false}}'`,
				innocent: append(innocent, [2]string{"Job/j", "nothing holds"}),
			}
		},
		"CronJob whose last Job has failed": func() wanted {
			s := cronScene(func(*batchv1.CronJob) {})
			s.with(Jobs, ownedBy(&batchv1.Job{ObjectMeta: meta("first")}, CronJobs, "c"))
			return wanted{
				scene: s, of: CronJobs.Named("n", "c"), guilty: Jobs.Named("n", "j"), what: "2 pods have failed",
				command: "kubectl -n n delete jobs.batch j", innocent: append(innocent, [2]string{"Job/first", "not the last one"}),
			}
		},
		"CronJob whose Job still runs": func() wanted {
			s := cronScene(func(c *batchv1.CronJob) {
				c.Spec.ConcurrencyPolicy, c.Status.Active = batchv1.ForbidConcurrent, []corev1.ObjectReference{{Name: "j", UID: "Job-j"}}
			})
			s.with(Jobs, ownedBy(&batchv1.Job{ObjectMeta: meta("first")}, CronJobs, "c"))
			return wanted{
				scene: s, of: CronJobs.Named("n", "c"), guilty: CronJobs.Named("n", "c"), what: "j still runs, and its concurrencyPolicy is Forbid",
				innocent: append(innocent, [2]string{"Job/first", "not the last one"}),
			}
		},
	}
}

func autoscalerScenes() map[string]func() wanted {
	condition := func(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason string) autoscalingv2.HorizontalPodAutoscalerCondition {
		return autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason, Message: reason + " it is"}
	}
	scaled := func(limited, active corev1.ConditionStatus) *scene {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta("h")}
		hpa.Spec.ScaleTargetRef, hpa.Spec.MaxReplicas = autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}, 7
		hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
			condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ReadyForNewScale"),
			condition(autoscalingv2.ScalingActive, active, "FailedGetResourceMetric"), condition(autoscalingv2.ScalingLimited, limited, "TooManyReplicas"),
		}
		d := &appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0)}}
		return (&scene{}).with(Autoscalers, hpa).with(Deployments, d)
	}
	of, able := Autoscalers.Named("n", "h"), [2]string{"HorizontalPodAutoscaler/h", "AbleToScale"}
	return map[string]func() wanted{
		"autoscaler without metrics": func() wanted {
			return wanted{scene: scaled(corev1.ConditionFalse, corev1.ConditionFalse), of: of, guilty: of, what: "FailedGetResourceMetric: FailedGetResourceMetric it is",
				innocent: [][2]string{able, {"Deployment/web", "nothing holds it"}}}
		},
		"autoscaler at its limit": func() wanted {
			return wanted{scene: scaled(corev1.ConditionTrue, corev1.ConditionTrue), of: of, guilty: of, what: "TooManyReplicas",
				innocent: [][2]string{able, {"Deployment/web", "nothing holds it"}}}
		},
		"autoscaler without a target": func() wanted {
			s := scaled(corev1.ConditionFalse, corev1.ConditionTrue)
			s.objects = s.objects[:1]
			return wanted{scene: s, of: of, guilty: Deployments.Named("n", "web"), what: "does not exist",
				innocent: [][2]string{able, {"HorizontalPodAutoscaler/h", "ScalingLimited"}}}
		},
	}
}
