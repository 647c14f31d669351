package nodefaults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	namespace = "default"
	// podTimeMax bounds what happens to pods. A healthy machine needs a second or two, and the longest pause after a failure is 10 s.
	podTimeMax = 90 * time.Second
	// faultLabel is on the pods that a fault may harm.
	faultLabel = "fault"
)

func (n *node) pods() corev1client.PodInterface { return n.client.CoreV1().Pods(namespace) }

// newPod is one with a container that waits, a token and a folder of its own.
func newPod(name string) *corev1.Pod {
	second := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{faultLabel: "yes"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &second,
			Volumes:                       []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "c", Image: workloadImage, ImagePullPolicy: corev1.PullNever, Args: []string{"wait", name},
				VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/own"}},
			}},
		},
	}
}

func (n *node) create(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		_, err := n.pods().Create(t.Context(), pod, metav1.CreateOptions{})
		check(t, err)
	}
}

// awaitPod polls the pod until good returns "".
func (n *node) awaitPod(t *testing.T, name string, good func(*corev1.Pod) string) {
	t.Helper()
	n.await(t, podTimeMax, "pod "+name, func(ctx context.Context) string {
		pod, err := n.pods().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if why := good(pod); why != "" {
			return why + "\n" + n.describe(ctx, pod)
		}
		return ""
	})
}

func (n *node) awaitReady(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		n.awaitPod(t, name, isReady)
	}
}

func isReady(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		return ""
	}
	return "is not ready"
}

// describe is what a user is told of the pod: its status, and its events.
func (n *node) describe(ctx context.Context, pod *corev1.Pod) string {
	var out strings.Builder
	fmt.Fprintln(&out, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, status := range pod.Status.ContainerStatuses {
		for kind, state := range map[string]corev1.ContainerState{"state": status.State, "last state": status.LastTerminationState} {
			if state.Waiting != nil {
				fmt.Fprintln(&out, status.Name, kind, state.Waiting.Reason, state.Waiting.Message)
			}
			if state.Terminated != nil {
				fmt.Fprintln(&out, status.Name, kind, state.Terminated.ExitCode, state.Terminated.Reason, state.Terminated.Message)
			}
		}
	}
	events, err := n.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		fmt.Fprintln(&out, err)
		return out.String()
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Type != corev1.EventTypeNormal {
			fmt.Fprintln(&out, e.Reason, e.Message)
		}
	}
	return out.String()
}

// tell shows what users are told in the end.
func (n *node) tell(t *testing.T) {
	list, err := n.pods().List(t.Context(), metav1.ListOptions{LabelSelector: faultLabel, Limit: 5})
	check(t, err)
	for i := range list.Items {
		t.Logf("%s: %s", list.Items[i].Name, n.describe(t.Context(), &list.Items[i]))
	}
}

// awaitTold waits until the pod's status or events have the text.
func (n *node) awaitTold(t *testing.T, name, text string) {
	t.Helper()
	n.awaitPod(t, name, func(pod *corev1.Pod) string {
		if told := n.describe(t.Context(), pod); !strings.Contains(told, text) {
			return fmt.Sprintf("nobody is told %q", text)
		}
		return ""
	})
}

// deletePods deletes the pods of the fault, and waits until they are gone.
func (n *node) deletePods(t *testing.T) {
	t.Helper()
	check(t, n.pods().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: faultLabel}))
	n.awaitGone(t)
}

func (n *node) awaitGone(t *testing.T) {
	t.Helper()
	n.await(t, podTimeMax, "pods that are deleted", func(ctx context.Context) string {
		list, err := n.pods().List(ctx, metav1.ListOptions{LabelSelector: faultLabel})
		if err != nil {
			return err.Error()
		}
		var left []string
		for i := range list.Items {
			left = append(left, list.Items[i].Name+" "+n.describe(ctx, &list.Items[i]))
		}
		return strings.Join(left[:min(len(left), 5)], "\n")
	})
}

func (n *node) delete(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := n.pods().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// awaitDeleted waits until this pod is gone.
func (n *node) awaitDeleted(t *testing.T, name string) {
	t.Helper()
	n.await(t, podTimeMax, "pod "+name+", which is deleted", func(ctx context.Context) string {
		pod, err := n.pods().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		}
		return n.describe(ctx, pod)
	})
}

// notRestarted says that the pod is ready, and that nothing of it was started again.
func (n *node) notRestarted(t *testing.T, name string) {
	t.Helper()
	n.awaitPod(t, name, func(pod *corev1.Pod) string {
		if why := isReady(pod); why != "" {
			return why
		}
		if restarts := pod.Status.ContainerStatuses[0].RestartCount; restarts > 0 {
			return fmt.Sprintf("restarted %d times", restarts)
		}
		return ""
	})
}
