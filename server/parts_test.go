package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/parts"
)

func adminOf(t *testing.T, s *Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.RESTConfig(&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// follow reads the log of a part until it ends; the channel gets its lines and is closed then.
func follow(t *testing.T, client kubernetes.Interface, part, server string) <-chan string {
	t.Helper()
	options := &corev1.PodLogOptions{Follow: true}
	stream, err := client.CoreV1().Pods(parts.Namespace).GetLogs(parts.PodName(part, server), options).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		defer func() { _ = stream.Close() }()
		text := bufio.NewReader(stream)
		for {
			line, err := text.ReadString('\n')
			if err != nil && err != io.EOF {
				line = "broken: " + err.Error()
			}
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// awaitLine reads until a line has the text.
func awaitLine(t *testing.T, lines <-chan string, text string) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case line, more := <-lines:
			if strings.Contains(line, text) {
				return
			}
			if !more || strings.HasPrefix(line, "broken: ") {
				t.Fatalf("%q never came: %s", text, line)
			}
		case <-timeout:
			t.Fatalf("%q never came", text)
		}
	}
}

func leading(pods []corev1.Pod) (names []string) {
	for _, pod := range pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == "setpoint.io/Leading" && c.Status == corev1.ConditionTrue {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
}

// TestThePartsOfThreeServers: they are seen through every server, and whoever follows all loops sees each leader's actions.
func TestThePartsOfThreeServers(t *testing.T) {
	_, _, servers, _ := startThree(t)
	var leader, other *Server
	soon(t, func() string {
		list, err := adminOf(t, servers[0]).CoreV1().Pods(parts.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "tier=control-plane"})
		if err != nil || len(list.Items) != len(servers)*len(parts.All()) {
			return fmt.Sprint(list, err)
		}
		for _, s := range servers {
			if s.log.Leadership().Leader {
				leader = s
			} else {
				other = s
			}
		}
		if leader == nil {
			return "nobody leads"
		}
		var want []string
		for _, part := range []string{parts.ControllerManager, parts.Scheduler, parts.Store} {
			want = append(want, parts.PodName(part, leader.config.Name))
		}
		got := leading(list.Items)
		slices.Sort(got)
		return cmp.Diff(want, got)
	})
	client := adminOf(t, other)
	followed := map[string]<-chan string{}
	for _, s := range servers {
		followed[s.config.Name] = follow(t, client, parts.ControllerManager, s.config.Name)
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("first"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, followed[leader.config.Name], `wanted=2 observed=0 done="create pods default/first-`)
	if err := leader.Stop(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := other.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("second"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for line := range followed[leader.config.Name] { // it ends, and without an error
		if strings.HasPrefix(line, "broken: ") {
			t.Error(line)
		}
	}
	var next string
	soon(t, func() string {
		for _, s := range servers {
			if s != leader && s.log.Leadership().Leader {
				next = s.config.Name
				return ""
			}
		}
		return "nobody leads"
	})
	awaitLine(t, followed[next], `wanted=2 observed=0 done="create pods default/second-`)
}
