package core

import (
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestPodOptionsFromQuery(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), AddPodOptions(scheme)); err != nil {
		t.Fatal(err)
	}
	codec := runtime.NewParameterCodec(scheme)
	read := func(text string, into runtime.Object) error {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		return codec.DecodeParameters(values, corev1.SchemeGroupVersion, into)
	}
	logs := &corev1.PodLogOptions{}
	if err := read("container=app&follow=true&previous=0&tailLines=5&sinceTime=2026-07-01T12:00:00Z&timestamps", logs); err != nil {
		t.Fatal(err)
	}
	since := metav1.NewTime(kindstest.Now)
	if diff := cmp.Diff(&corev1.PodLogOptions{Container: "app", Follow: true, TailLines: ptr.To[int64](5), SinceTime: &since, Timestamps: true}, logs); diff != "" {
		t.Error("log (-want +got):\n", diff)
	}
	exec := &corev1.PodExecOptions{}
	if err := read("stdout=1&stdin=true&tty=false&container=app&command=sh&command=-c&command=ls", exec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&corev1.PodExecOptions{Stdout: true, Stdin: true, Container: "app", Command: []string{"sh", "-c", "ls"}}, exec); diff != "" {
		t.Error("exec (-want +got):\n", diff)
	}
	ports := &corev1.PodPortForwardOptions{}
	if err := read("ports=80,81&ports=82", ports); err != nil || !cmp.Equal(ports.Ports, []int32{80, 81, 82}) {
		t.Errorf("ports = %v (%v)", ports.Ports, err)
	}
	if err := read("tailLines=many", &corev1.PodLogOptions{}); err == nil {
		t.Error("a bad number must be refused")
	}
}
