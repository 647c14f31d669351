package revoked

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

// TestFollow: the judge knows each list soon, and nobody when it is gone.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, judge := fake.NewClientset(), &revocation.Judge{}
		lists := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
		go Follow(t.Context(), client, judge, slog.New(slog.NewTextHandler(t.Output(), nil)))
		entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Node, Name: "a"}, At: time.Now()}
		list := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: revocation.ConfigMapName},
			Data:       map[string]string{entry.DataKey(): entry.Text(), "node.broken": "x"},
		}
		who := revocation.Identity{User: "system:node:a"}
		for _, step := range []struct {
			do      func() error
			revoked bool
		}{
			{func() error { return nil }, false},
			{func() error { _, err := lists.Create(t.Context(), list, metav1.CreateOptions{}); return err }, true},
			{func() error {
				_, err := lists.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: list.ObjectMeta}, metav1.UpdateOptions{})
				return err
			}, false},
			{func() error { _, err := lists.Update(t.Context(), list, metav1.UpdateOptions{}); return err }, true},
			{func() error { return lists.Delete(t.Context(), list.Name, metav1.DeleteOptions{}) }, false},
		} {
			err := step.do()
			time.Sleep(time.Second) // of the bubble
			synctest.Wait()
			if revoked := judge.Revoked(who) != nil; err != nil || revoked != step.revoked {
				t.Error(fmt.Sprint(revoked), err)
			}
		}
	})
}
