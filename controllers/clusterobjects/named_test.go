package clusterobjects

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestALeaderThatDoesNotKnowYetWhomToBelieve leaves what others have told, and tells nobody a part; it tries again.
func TestALeaderThatDoesNotKnowYetWhomToBelieve(t *testing.T) {
	unknown := errors.New("not known yet")
	part := func() (map[string]string, error) { return map[string]string{"client-ca-file": "new"}, unknown }
	client := fake.NewClientset()
	stored := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if err := ensureAuthentication(t.Context(), client, part); !errors.Is(err, unknown) {
		t.Errorf("nobody was told: %v", err)
	}
	if _, err := stored.Get(t.Context(), authenticationConfig, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a part was told: %v", err)
	}
	told := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: authenticationConfig, Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{"client-ca-file": "old", "requestheader-client-ca-file": "X"},
	}
	if err := client.Tracker().Add(told); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when there is nothing to write
		if err := ensureAuthentication(t.Context(), client, part); !errors.Is(err, unknown) {
			t.Errorf("told before: %v", err)
		}
	}
	is, err := stored.Get(t.Context(), authenticationConfig, metav1.GetOptions{})
	if want := map[string]string{"client-ca-file": "new", "requestheader-client-ca-file": "X"}; err != nil || !maps.Equal(is.Data, want) {
		t.Errorf("%v, %v", is, err)
	}
}
