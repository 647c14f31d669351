package setpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/server/admin"
)

// offerOf is what a page is told of the lessons of a cluster.
func offerOf(t *testing.T, config *rest.Config) (offer admin.LessonsOffer) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(config.Host + "/setpoint.v1.ClusterService/Lesson")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&offer); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", answer.Status, err)
	}
	return offer
}

// TestTheClockOfALesson: a cluster in memory has one that can be moved, and its clients may only if it is one to learn on.
func TestTheClockOfALesson(t *testing.T) {
	for name, c := range map[string]struct {
		lessons bool
		by      time.Duration
		code    int // 0: it is done
		why     string
	}{
		"moved":    {true, 5 * time.Minute, 0, ""},
		"back":     {true, -time.Minute, http.StatusBadRequest, "at most 1h"},
		"too far":  {true, admin.AdvanceMax + 1, http.StatusBadRequest, "at most 1h"},
		"no study": {false, time.Minute, http.StatusConflict, "for clusters to learn on"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, APIOnly: true, Lessons: c.lessons})
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Stop()
			if err := cluster.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			config := overASocket(t, cluster)
			if offer := offerOf(t, config); (offer.Refused == "") != c.lessons || (offer.NoClock == "") != c.lessons {
				t.Errorf("a page is told %+v", offer)
			}
			ahead := time.Until(cluster.Clock().Now())
			err = admin.OrderLesson(t.Context(), config, admin.LessonOrder{Order: admin.AdvanceLesson, By: c.by})
			refused := (*admin.Refusal)(nil)
			switch {
			case c.code == 0 && err != nil:
				t.Fatal(err)
			case c.code == 0:
				if moved := time.Until(cluster.Clock().Now()) - ahead; moved.Round(time.Second) != c.by {
					t.Errorf("the clock was moved by %v, want %v", moved, c.by)
				}
			case !errors.As(err, &refused) || refused.StatusCode != c.code || !strings.Contains(refused.Reason, c.why):
				t.Errorf("%v, want %d for %q", err, c.code, c.why)
			}
		})
	}
}

// TestPodsOfANodeThatIsOff: nothing happens to them, and nobody heals them. The server whose port is asked is not killed.
func TestPodsOfANodeThatIsOff(t *testing.T) {
	cluster, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, SimulatedNodes: 1, Replicas: 3, Lessons: true})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	config := overASocket(t, cluster)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	runningPod(t, client, "p", "sim-1")
	order := func(order, part, name string) error {
		return admin.OrderLesson(t.Context(), config, admin.LessonOrder{Order: order, Part: part, Name: name})
	}
	refused := func(err error, why string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	if err := order(admin.KillLesson, admin.NodePart, "sim-1"); err != nil {
		t.Fatal(err)
	}
	refused(order(admin.KillLesson, admin.PodPart, "default/p"), "its node is switched off")
	if err := order(admin.HealLesson, admin.NodePart, "sim-1"); err != nil {
		t.Fatal(err)
	}
	if err := order(admin.KillLesson, admin.PodPart, "default/p"); err != nil {
		t.Error(err)
	}
	if err := order(admin.KillLesson, admin.NodePart, "sim-1"); err != nil {
		t.Fatal(err)
	}
	refused(order(admin.HealLesson, admin.PodPart, "default/p"), "its node is switched off")
	refused(order(admin.KillLesson, admin.ServerPart, "server-1"), "reached by the port of this server alone")
	if err := errors.Join(
		order(admin.KillLesson, admin.ServerPart, "server-2"), order(admin.HealLesson, admin.ServerPart, "server-2"),
	); err != nil {
		t.Error(err)
	}
}

// runningPod returns when a pod runs that was created on the node.
func runningPod(t *testing.T, client kubernetes.Interface, name, node string) {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) { // its ServiceAccount is on its way
			return false, nil
		}
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, err
	}); err != nil {
		t.Fatal(err)
	}
}

// overASocket is the administrator's client of a cluster in memory, as a command has it.
func overASocket(t *testing.T, cluster *setpoint.Cluster) *rest.Config {
	t.Helper()
	kubeconfig, err := cluster.Listen()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestAPauseEndsWithItsTerm: the loops of the next leader go on, and whoever steps one is told that it is not paused.
func TestAPauseEndsWithItsTerm(t *testing.T) {
	cluster, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, SimulatedNodes: 1, Replicas: 3, Lessons: true})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	pause := func() (answer admin.PaceAnswer, err error) {
		return admin.OrderPace(t.Context(), config, admin.PaceOrder{Order: admin.PauseLoop, Loop: "deployment"})
	}
	eventually(t, "a leader whose loops act", func() bool { _, err := pause(); return err == nil })
	paused, err := pause()
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	labels := map[string]string{"app": "held"}
	_, err = client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "held"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets := func() int {
		list, err := client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return -1 // there may be no leader
		}
		return len(list.Items)
	}
	if err := cluster.Advance(t.Context(), time.Minute); err != nil || sets() != 0 {
		t.Fatalf("a paused loop has made %d ReplicaSets, %v", sets(), err)
	}
	if err := cluster.CrashServer(paused.Server); err != nil {
		t.Fatal(err)
	}
	if config, err = cluster.RESTConfig(); err != nil { // of a server that runs
		t.Fatal(err)
	}
	client = kubernetes.NewForConfigOrDie(config)
	eventually(t, "what waited is done by the next leader", func() bool { return sets() == 1 })
	report, err := admin.FetchLoops(t.Context(), config)
	if err != nil || report.Server == paused.Server {
		t.Fatalf("%s leads, %v", report.Server, err)
	}
	for _, loop := range report.Loops {
		if loop.Paused {
			t.Errorf("%s is paused on the next leader", loop.Queue)
		}
	}
	_, err = admin.OrderPace(t.Context(), config, admin.PaceOrder{Order: admin.StepLoop, Loop: "deployment"})
	if refused := (*admin.Refusal)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "it is not paused") {
		t.Errorf("a step after that: %v", err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return is(), nil
	}); err != nil {
		t.Fatalf("not %s: %v", what, err)
	}
}
