package server

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/controllers/rootca"
	"github.com/setpoint-io/setpoint/internal/rotation"
)

// TestWhatIsNotPublishedIsWaitedFor: by what should be there, so also what is missing; not for what goes.
func TestWhatIsNotPublishedIsWaitedFor(t *testing.T) {
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	bundle := func(namespace, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rootca.Name}, Data: map[string]string{rootca.Key: text}}
	}
	goes, fixed := namespace("goes"), bundle("fixed", "old")
	goes.DeletionTimestamp, goes.Finalizers, fixed.Immutable = new(metav1.Now()), []string{"kubernetes"}, new(true)
	told := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: aggregation.AuthenticationName},
		Data:       map[string]string{aggregation.ClientCAs: "old"},
	}
	client := fake.NewClientset(
		namespace("has"), bundle("has", "new"), namespace("old"), bundle("old", "old"), namespace("lacks"), goes, bundle("goes", "old"),
		namespace("fixed"), fixed, told,
	)
	line := func() string {
		progress := rotation.Progress{
			State: rotation.State{Kind: rotation.CA, Phase: rotation.Trust}, Step: rotation.Step{Waits: unpublished(t.Context(), client, "new")},
		}
		_, waits, _ := strings.Cut(progress.Line(), "; it waits for ")
		return waits
	}
	want := "namespaces fixed: their ConfigMaps kube-root-ca.crt are immutable: delete them, others are made, " +
		"namespaces lacks, old: their ConfigMaps kube-root-ca.crt have not taken the change yet, " +
		"ConfigMap extension-apiserver-authentication: it has not taken the change yet"
	if got := line(); got != want {
		t.Errorf("it waits for %s,\nwant %s", got, want)
	}
	for _, name := range []string{"fixed", "lacks", "old"} {
		_ = client.CoreV1().ConfigMaps(name).Delete(t.Context(), rootca.Name, metav1.DeleteOptions{})
		if _, err := client.CoreV1().ConfigMaps(name).Create(t.Context(), bundle(name, "new"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	told.Data[aggregation.ClientCAs] = "new"
	if _, err := client.CoreV1().ConfigMaps(told.Namespace).Update(t.Context(), told, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := line(); got != "" {
		t.Errorf("it waits for %s", got)
	}
}
