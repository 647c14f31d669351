package revoked

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestFollow: the judge knows each list soon, and nobody when it is gone.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, dir := fake.NewClientset(), t.TempDir()
		logger := slog.New(slog.NewTextHandler(t.Output(), nil))
		followed := Open(dir, writeFile, logger)
		judge := followed.Judge
		lists := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
		go followed.Follow(t.Context(), client)
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
			if kept := Open(dir, writeFile, logger).Judge.Revoked(who) != nil; kept != step.revoked {
				t.Errorf("the next agent begins with %v", kept)
			}
		}
	})
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

// TestWhatWasKept counts until a server has said something else, also that there is no list.
func TestWhatWasKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, logger := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil))
		entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Server, Name: "s"}, At: time.Now()}
		Open(dir, writeFile, logger).take(map[string]string{entry.DataKey(): entry.Text()}, true)
		list, who := Open(dir, writeFile, logger), revocation.Identity{User: trust.ServerUser("s")}
		if err := list.Judge.Revoked(who); err == nil {
			t.Error("it was forgotten")
		}
		go list.Follow(t.Context(), fake.NewClientset())
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
		if err := list.Judge.Revoked(who); err != nil {
			t.Errorf("there is no list any more: %v", err)
		}
	})
}

// TestAKeptListThatIsNone: what no agent wrote revokes nobody, and keeps no agent from starting; the next list is kept in its place.
func TestAKeptListThatIsNone(t *testing.T) {
	entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Server, Name: "s"}, At: time.Now()}
	data := map[string]string{entry.DataKey(): entry.Text()}
	good, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	who := revocation.Identity{User: trust.ServerUser("s")}
	for name, text := range map[string]string{
		"empty": "", "null": "null", "no JSON": "x", "a list": "[]", "cut": string(good[:len(good)-1]), "two": string(good) + string(good),
		"too large": string(good) + strings.Repeat(" ", fileBytesMax), "another type after it": string(good[:len(good)-1]) + `,"x":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir, logger := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil))
			path := filepath.Join(dir, fileName)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			list := Open(dir, writeFile, logger)
			if err := list.Judge.Revoked(who); err != nil {
				t.Error(err)
			}
			list.take(data, true)
			if list.Judge.Revoked(who) == nil || Open(dir, writeFile, logger).Judge.Revoked(who) == nil {
				t.Error("the next list does not count, or was not kept")
			}
		})
	}
}

// TestAListThatCannotBeKept counts nevertheless.
func TestAListThatCannotBeKept(t *testing.T) {
	full := func(string, []byte) error { return syscall.ENOSPC }
	list := Open(t.TempDir(), full, slog.New(slog.NewTextHandler(t.Output(), nil)))
	entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Server, Name: "s"}, At: time.Now()}
	list.take(map[string]string{entry.DataKey(): entry.Text()}, true)
	if list.Judge.Revoked(revocation.Identity{User: trust.ServerUser("s")}) == nil {
		t.Error("it does not count")
	}
}
