package legacytoken

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// words signs by saying for whom.
type words struct{}

func (words) IssueLegacy(account *corev1.ServiceAccount, secret *corev1.Secret) (string, error) {
	return "token of " + string(account.UID) + " in " + secret.Name, nil
}

func account(uid string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: types.UID(uid)}}
}

func secret(uid string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: "web"}}, Type: corev1.SecretTypeServiceAccountToken}
	if uid != "" {
		s.Annotations[corev1.ServiceAccountUIDKey] = uid
	}
	return s
}

func run(w *reconciletest.World) {
	w.Run(New(words{}, []byte("PEM")))
	w.Settle()
}

func TestSecretsAreFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		other := secret("")
		other.Name, other.Type = "other", corev1.SecretTypeOpaque
		reconciletest.Add(w, account("u1"))
		reconciletest.Add(w, secret(""))
		reconciletest.Add(w, other)
		run(w)
		if writes := w.Writes(); len(writes) != 1 {
			t.Errorf("%v", writes)
		}
		secrets := w.Client.CoreV1().Secrets("ns")
		got, err := secrets.Get(t.Context(), "s", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Data["token"]) != "token of u1 in s" || string(got.Data["ca.crt"]) != "PEM" || string(got.Data["namespace"]) != "ns" || got.Annotations[corev1.ServiceAccountUIDKey] != "u1" {
			t.Errorf("%q %v", got.Data, got.Annotations)
		}
		got.Data["ca.crt"] = []byte("forged")
		if _, err := secrets.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if got, err = secrets.Get(t.Context(), "s", metav1.GetOptions{}); err != nil || string(got.Data["ca.crt"]) != "PEM" || string(got.Data["token"]) != "token of u1 in s" {
			t.Errorf("not repaired: %q, %v", got.Data, err)
		}
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		if err := w.Client.CoreV1().ServiceAccounts("ns").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if _, err := secrets.Get(t.Context(), "s", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the account has gone, its secret has not: %v", err)
		}
		if _, err := secrets.Get(t.Context(), "other", metav1.GetOptions{}); err != nil {
			t.Errorf("another secret has gone: %v", err)
		}
	})
}

// TestSecretsOfOthersGo: an account that was made anew is another.
func TestSecretsOfOthersGo(t *testing.T) {
	for name, c := range map[string]struct {
		account *corev1.ServiceAccount
		secret  *corev1.Secret
		stays   bool
	}{
		"the same account":    {account("u1"), secret("u1"), true},
		"made anew":           {account("u2"), secret("u1"), false},
		"there has been none": {nil, secret(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reconciletest.New(t)
				if c.account != nil {
					reconciletest.Add(w, c.account)
				}
				reconciletest.Add(w, c.secret)
				run(w)
				_, err := w.Client.CoreV1().Secrets("ns").Get(t.Context(), "s", metav1.GetOptions{})
				if stays := err == nil; stays != c.stays {
					t.Errorf("stays: %v, %v", stays, err)
				}
			})
		})
	}
}
