package setpoint_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// secretsWritten are as many as the leader writes again in some seconds.
const secretsWritten = 500

// TestSecretsAreWrittenAgain: the key of what is stored is replaced while somebody writes, the leader dies in the middle, and the way back
// is taken once; all Secrets can be read at each moment, and at the end nobody has the old key.
func TestSecretsAreWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, APIOnly: true, Replicas: 3})
		client := ready(t, c, err)
		for i := range secretsWritten {
			writeSecret(t, client, fmt.Sprint("many-", i))
		}
		end := writeOn(t, client)
		first := order(t, c, rotations.Begin)
		if first.Phase != rotation.Trust {
			t.Errorf("begun: %s", first.Line())
		}
		rewriting := func(p rotation.Progress) bool {
			return p.Phase == rotation.Use && strings.Contains(p.Line(), "to write again")
		}
		awaitRotation(t, c, rewriting)
		if p := order(t, c, rotations.Abort); !p.Aborted {
			t.Errorf("aborted: %s", p.Line())
		}
		if back := awaitRotation(t, c, isDone); back.To != first.From {
			t.Errorf("on the way back it came to %s, not %s", back.To, first.From)
		}
		began := order(t, c, rotations.Begin).Started
		awaitRotation(t, c, rewriting)
		leader := c.Leader()
		if err := c.CrashServer(leader); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if p := order(t, c, rotations.Status); !strings.Contains(p.Line(), leader+": it does not answer") {
			t.Errorf("without its leader: %s", p.Line())
		}
		if err := c.StartServer(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		done := awaitRotation(t, c, isDone)
		if done.From != first.From || done.To == first.To || done.Since.Sub(began) < rotation.EncryptionKeyKept {
			t.Errorf("done: %+v", done.State)
		}
		written := end()
		all, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) != secretsWritten+written || written == 0 {
			t.Fatalf("%d Secrets, want %d: %v", len(all.Items), secretsWritten+written, err)
		}
		for _, secret := range all.Items {
			if string(secret.Data["text"]) != secret.Name {
				t.Errorf("%s has %q", secret.Name, secret.Data["text"])
			}
		}
	})
}

func isDone(p rotation.Progress) bool { return p.Phase == rotation.Done }

func writeSecret(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"text": []byte(name)}}
	_, err := client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsTimeout(err) { // its leader died: the write may have taken effect, or not
		_, err = client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Errorf("%s: %v", name, err)
	}
}

// writeOn writes and reads a Secret each second until it is ended, which tells how many there are.
func writeOn(t *testing.T, client kubernetes.Interface) (end func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			name := fmt.Sprint("written-", n)
			writeSecret(t, client, name)
			if got, err := client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil || string(got.Data["text"]) != name {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
		}
		written <- n
	}()
	return func() int {
		cancel()
		return <-written
	}
}

func order(t *testing.T, c *setpoint.Cluster, what string) rotation.Progress {
	t.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	p, err := admin.OrderRotation(t.Context(), config, rotations.Order{Kind: rotation.EncryptionKey, Order: what})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return p
}

// awaitRotation waits until a rotation is as wanted.
func awaitRotation(t *testing.T, c *setpoint.Cluster, wanted func(rotation.Progress) bool) rotation.Progress {
	t.Helper()
	for range 1000 {
		if p := order(t, c, rotations.Status); wanted(p) {
			return p
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Fatalf("it does not come so far: %s", order(t, c, rotations.Status).Line())
	return rotation.Progress{}
}
