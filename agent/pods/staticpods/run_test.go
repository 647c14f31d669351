package staticpods

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// node runs pods until they are told to end.
type node struct {
	client *fake.Clientset
	runs   map[types.UID]*corev1.Pod
}

func (n *node) StartStatic(_ context.Context, pod *corev1.Pod) { n.runs[pod.UID] = pod }
func (n *node) EndStatic(_ context.Context, pod *corev1.Pod)   { delete(n.runs, pod.UID) }
func (n *node) Runs(uid types.UID) bool                        { return n.runs[uid] != nil }

func (n *node) Mirrors() (list []*corev1.Pod, known bool) {
	got, err := n.client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, false
	}
	for i := range got.Items {
		list = append(list, &got.Items[i])
	}
	return list, true
}

func TestTheFolderIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "web.yaml")
	write := func(image string) {
		t.Helper()
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: " + image + "}]}"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		n := &node{client: fake.NewClientset(), runs: map[types.UID]*corev1.Pod{}}
		k := New(Config{
			Path: dir, NodeName: "n1", Client: n.client, Pods: n, Complete: func(*corev1.Pod) error { return nil },
			NodeUID: func() types.UID { return "node" }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		rounds := func() (image, shown string) {
			for range 4 {
				k.Round(t.Context())
			}
			for _, pod := range n.runs {
				image += pod.Spec.Containers[0].Image
			}
			mirrors, _ := n.Mirrors()
			for _, m := range mirrors {
				shown += m.Spec.Containers[0].Image
				if m.OwnerReferences[0].UID != "node" || n.runs[types.UID(m.Annotations[corev1.MirrorPodAnnotationKey])] == nil {
					t.Errorf("mirror %+v", m.ObjectMeta)
				}
			}
			return image, shown
		}
		for _, image := range []string{"one", "two"} {
			write(image)
			if runs, shown := rounds(); runs != image || shown != image {
				t.Errorf("%s: runs %q, shown %q", image, runs, shown)
			}
		}
		if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		if runs, shown := rounds(); runs != "" || shown != "" {
			t.Errorf("a manifest that is wrong: runs %q, shown %q", runs, shown)
		}
	})
}

// TestMistakesAreTold once, and again of a file that was not there in between.
func TestMistakesAreTold(t *testing.T) {
	dir, said := t.TempDir(), &strings.Builder{}
	n := &node{client: fake.NewClientset(), runs: map[types.UID]*corev1.Pod{}}
	k := New(Config{
		Path: dir, NodeName: "n1", Client: n.client, Pods: n, Complete: func(*corev1.Pod) error { return nil },
		NodeUID: func() types.UID { return "node" }, Logger: slog.New(slog.NewTextHandler(said, nil)),
	})
	path := filepath.Join(dir, "web.yaml")
	for i := range 3 {
		if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		k.Round(t.Context())
		k.Round(t.Context())
		if n := strings.Count(said.String(), path); n != i+1 {
			t.Errorf("told %d times: %s", n, said)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		k.Round(t.Context())
	}
}
