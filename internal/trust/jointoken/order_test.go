package jointoken

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestALostAnswerMakesNoSecondToken: asked again, the order finds its token, and takes none of somebody else's.
func TestALostAnswerMakesNoSecondToken(t *testing.T) {
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: rootCABundle}, Data: map[string]string{"ca.crt": string(ca.CertPEM())},
	})
	isLost := true
	client.PrependReactor("create", "secrets", func(action ktesting.Action) (bool, runtime.Object, error) {
		if !isLost {
			return false, nil, nil
		}
		isLost = false
		if err := client.Tracker().Add(action.(ktesting.CreateAction).GetObject()); err != nil {
			t.Error(err)
		}
		return true, nil, context.DeadlineExceeded
	})
	order := Order{Wanted: Wanted{TTL: time.Hour, Nodes: 1}}
	if token, err := order.Create(t.Context(), client, time.Now()); err == nil {
		t.Fatalf("it was answered: %v", token)
	}
	token, err := order.Create(t.Context(), client, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), client)
	if err != nil || len(all) != 1 || all[0].ID != token.ID || token.Token == "" {
		t.Fatalf("made: %v, %v; want %s alone", all, err, token.ID)
	}
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	theirs, err := secrets.Get(t.Context(), "bootstrap-token-"+token.ID, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs.Data["token-secret"] = []byte("0123456789abcdef")
	if _, err := secrets.Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if token, err := order.Create(t.Context(), client, time.Now()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("another's: %v, %v", token, err)
	}
}
