package csinode

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func node(uid types.UID) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}}
}

func driver(name string, keys ...string) Driver {
	d := Driver{CSINodeDriver: storagev1.CSINodeDriver{Name: name, NodeID: "id", TopologyKeys: keys}, Labels: map[string]string{}}
	for _, key := range keys {
		d.Labels[key] = "here"
	}
	return d
}

// running runs a Keeper over the objects until the test ends.
func running(t *testing.T, objects ...runtime.Object) (*Keeper, *fake.Clientset) {
	client := fake.NewClientset(objects...)
	k := New(client, "n", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return k, client
}

func names(t *testing.T, client *fake.Clientset) (names []string) {
	t.Helper()
	found, err := client.StorageV1().CSINodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found.Spec.Drivers {
		names = append(names, d.Name)
	}
	return names
}

func writes(client *fake.Clientset) (n int) {
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	client.ClearActions()
	return n
}

func TestDriversComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client := running(t, node("a"), &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: "n", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "a"}}},
			Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "later"}, {Name: "b", NodeID: "old"}}},
		})
		k.Set(driver("b"))
		k.Set(driver("a", "zone"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a", "b", "later"}, names(t, client)); diff != "" {
			t.Error(diff)
		}
		labelled, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || labelled.Labels["zone"] != "here" {
			t.Errorf("%v, %v", labelled.Labels, err)
		}
		writes(client)
		k.Set(driver("a", "zone"))
		k.Look()
		synctest.Wait()
		if n := writes(client); n > 0 {
			t.Errorf("nothing has changed, but there are %d writes", n)
		}
		k.Remove("b")
		synctest.Wait()
		if diff := cmp.Diff([]string{"a", "later"}, names(t, client)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestANodeMadeAnewGetsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client := running(t)
		k.Set(driver("a"))
		time.Sleep(time.Minute) // there is no Node yet
		if err := client.Tracker().Add(node("one")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(retryMax)
		names(t, client)
		if err := errors.Join(client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}), client.Tracker().Add(node("two"))); err != nil {
			t.Fatal(err)
		}
		k.Look()
		synctest.Wait()
		found, err := client.StorageV1().CSINodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || found.OwnerReferences[0].UID != "two" {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// TestADriverThatRegistersOtherwise: the API refuses to change an entry.
func TestADriverThatRegistersOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client := running(t, node("a"))
		k.Set(driver("a"))
		synctest.Wait()
		client.PrependReactor("update", "csinodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			was, _ := client.Tracker().Get(storagev1.SchemeGroupVersion.WithResource("csinodes"), "", "n")
			is := a.(clienttesting.UpdateAction).GetObject().(*storagev1.CSINode)
			if had := was.(*storagev1.CSINode).Spec.Drivers; len(had) > 0 && len(is.Spec.Drivers) > 0 {
				return true, nil, apierrors.NewInvalid(storagev1.SchemeGroupVersion.WithKind("CSINode").GroupKind(), "n", nil)
			}
			return false, nil, nil
		})
		k.Set(driver("a", "zone"))
		synctest.Wait()
		found, err := client.StorageV1().CSINodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || len(found.Spec.Drivers) != 1 || len(found.Spec.Drivers[0].TopologyKeys) != 1 {
			t.Errorf("%v, %v", found, err)
		}
	})
}
