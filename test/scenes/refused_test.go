package scenes

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// withoutEnd asks for two billion pods where five may be: five run, the Deployment says why there are no more, and it
// goes on when it may.
func withoutEnd(s *scene) {
	s.allowPods(5)
	s.deploy("shop", 2_000_000_000, nil)
	s.seeDeployment("shop", "five pods, and why no more", func(d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas == 5 && strings.Contains(failure(d), "exceeded quota")
	})
	s.seeEvent("ReplicaSet", "FailedCreate", "exceeded quota")
	s.allowPods(7)
	s.seeDeployment("shop", "seven pods", func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 7 })
	s.change("shop", func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
	s.seeDeployment("shop", "three pods, and nothing wrong", func(d *appsv1.Deployment) bool { return complete(d) && failure(d) == "" })
}

// withoutRoom lets no pod in: each workload says so in an event, and is done soon after pods may come in.
func withoutRoom(s *scene) {
	s.allowPods(0)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "shop:v1"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	once := *template.DeepCopy()
	once.Spec.RestartPolicy, once.Spec.Containers[0].Command = corev1.RestartPolicyNever, []string{"sleep", "0"}
	apps, ctx, create := s.client.AppsV1(), s.Context(), metav1.CreateOptions{}
	_, err := s.client.BatchV1().Jobs(s.namespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Template: once},
	}, create)
	s.must(err)
	_, err = apps.StatefulSets(s.namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template},
	}, create)
	s.must(err)
	_, err = apps.DaemonSets(s.namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemons"}, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}, create)
	s.must(err)
	for _, kind := range []string{"Job", "StatefulSet", "DaemonSet"} {
		s.seeEvent(kind, "FailedCreate", "exceeded quota")
	}
	s.allowPods(20)
	s.see("all is done", func(ctx context.Context) (string, bool) {
		job, err1 := s.client.BatchV1().Jobs(s.namespace).Get(ctx, "job", metav1.GetOptions{})
		set, err2 := apps.StatefulSets(s.namespace).Get(ctx, "set", metav1.GetOptions{})
		daemons, err3 := apps.DaemonSets(s.namespace).Get(ctx, "daemons", metav1.GetOptions{})
		if err1 != nil || err2 != nil || err3 != nil {
			return fmt.Sprint(err1, err2, err3), false
		}
		saw := []int32{job.Status.Succeeded, set.Status.AvailableReplicas, daemons.Status.NumberAvailable}
		return fmt.Sprint(saw), saw[0] == 1 && saw[1] == 1 && saw[2] >= 2 // the drain may have a node cordoned
	})
}

// refusedByWebhook has a webhook that nobody answers for: the Deployment says whose fault it is, and goes on without it.
func refusedByWebhook(s *scene) {
	address, effects, fail, seconds := "https://127.0.0.1:1/", admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, int32(1)
	hooks := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(s.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "nobody.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &effects, FailurePolicy: &fail, TimeoutSeconds: &seconds,
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &address},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	s.must(err)
	s.see("the webhook is asked", func(ctx context.Context) (string, bool) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		_, err := s.client.CoreV1().Pods(s.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err != nil
	})
	s.deploy("shop", 2, nil)
	s.seeDeployment("shop", "whose fault it is", func(d *appsv1.Deployment) bool { return strings.Contains(failure(d), "nobody.example.com") })
	s.seeEvent("ReplicaSet", "FailedCreate", "nobody.example.com")
	s.must(hooks.Delete(s.Context(), s.namespace, metav1.DeleteOptions{}))
	s.seeDeployment("shop", "complete", complete)
}

// allowPods sets how many pods may be in the namespace.
func (s *scene) allowPods(n int64) {
	s.Helper()
	quotas, pods := s.client.CoreV1().ResourceQuotas(s.namespace), *resource.NewQuantity(n, resource.DecimalSI)
	// One object throughout: without a quota, for a moment only, there would be more pods than the next one allows.
	patch := fmt.Appendf(nil, `{"spec": {"hard": {"pods": %q}}}`, pods.String())
	_, err := quotas.Patch(s.Context(), "room", types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "room"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: pods}
		_, err = quotas.Create(s.Context(), quota, metav1.CreateOptions{})
	}
	s.must(err)
}

func (s *scene) seeEvent(kind, reason, says string) {
	s.Helper()
	s.see(fmt.Sprintf("an event %s about a %s", reason, kind), func(ctx context.Context) (string, bool) {
		list, err := s.client.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",reason=" + reason})
		if err != nil {
			return err.Error(), false
		}
		for _, event := range list.Items {
			if strings.Contains(event.Message, says) {
				return event.Message, true
			}
		}
		return fmt.Sprintf("%d others", len(list.Items)), false
	})
}

// failure is why a Deployment has too few pods.
func failure(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
