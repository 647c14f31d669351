package storagemigration

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var configMaps = metav1.GroupResource{Resource: "configmaps"}

// begin runs the controller over ConfigMaps a, b and c.
func begin(t *testing.T) (*reconciletest.World, *fake.Clientset) {
	t.Helper()
	w := reconciletest.New(t)
	kinds := []reconciletest.Kind{{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true}}
	env, extensions := w.Env(), fake.NewClientset()
	env.Discovery, env.Metadata, env.Extensions = w.Discovery(kinds), w.Metadata(kinds), extensions
	for _, name := range []string{"a", "b", "c"} {
		reconciletest.Add(w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
	}
	w.RunIn(env, New())
	return w, extensions
}

func ask(w *reconciletest.World, name string, resource metav1.GroupResource) {
	m := &migration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Resource = resource
	reconciletest.Add(w, m)
}

// holds are the conditions that are true, and what is said of each.
func holds(t *testing.T, w *reconciletest.World, name string) map[string]string {
	t.Helper()
	w.Settle()
	m, err := w.Client.StoragemigrationV1().StorageVersionMigrations().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range m.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			out[c.Type] = c.Message
		}
	}
	return out
}

func expect(t *testing.T, w *reconciletest.World, name string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, holds(t, w, name)); diff != "" {
		t.Error(diff)
	}
}

// patches are the objects that were written, in order.
func patches(w *reconciletest.World) (all []string) {
	for _, write := range w.Writes() {
		if name, ok := strings.CutPrefix(write, "patch configmaps "); ok {
			all = append(all, name)
		}
	}
	return all
}

func TestEveryObjectIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := begin(t)
		ask(w, "first", configMaps)
		ask(w, "second", configMaps)
		done := map[string]string{"Succeeded": "Migration completed"}
		expect(t, w, "first", done)
		expect(t, w, "second", done)
		if diff := cmp.Diff([]string{"ns/a", "ns/b", "ns/c", "ns/a", "ns/b", "ns/c"}, patches(w)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}

// TestWhatFails ends the migration, or is tried again.
func TestWhatFails(t *testing.T) {
	resource := corev1.Resource("configmaps")
	for name, c := range map[string]struct {
		err  error
		want map[string]string
	}{
		"somebody else was faster": {apierrors.NewConflict(resource, "b", nil), map[string]string{"Succeeded": "Migration completed"}},
		"it has gone":              {apierrors.NewNotFound(resource, "b"), map[string]string{"Succeeded": "Migration completed"}},
		"refused": {apierrors.NewForbidden(resource, "b", nil), map[string]string{
			"Failed": "2/3 not yet migrated. migration encountered unhandled error: configmaps \"b\" is forbidden: <nil>"}},
		"it may pass": {apierrors.NewServiceUnavailable("busy"), map[string]string{
			"Running": "The migration is running, 2/3 objects not yet migrated; transient error: busy"}},
		"wait a minute": {apierrors.NewTooManyRequests("slow down", 60), map[string]string{
			"Running": "The migration is running, 2/3 objects not yet migrated; transient error: slow down"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := begin(t)
				var broken atomic.Bool
				broken.Store(true)
				w.Client.PrependReactor("patch", "configmaps", func(a ktesting.Action) (bool, runtime.Object, error) {
					return broken.Load() && a.(ktesting.PatchAction).GetName() == "b", nil, c.err
				})
				ask(w, "m", configMaps)
				expect(t, w, "m", c.want)
				broken.Store(false)
				time.Sleep(10 * time.Minute)
				if c.want["Running"] != "" {
					c.want = map[string]string{"Succeeded": "Migration completed"}
				}
				expect(t, w, "m", c.want)
			})
		})
	}
}

// TestAResourceThatIsNotThere has a minute to come.
func TestAResourceThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := begin(t)
		ask(w, "m", metav1.GroupResource{Group: "example.com", Resource: "things"})
		expect(t, w, "m", map[string]string{"Running": "The migration is running"})
		time.Sleep(patience)
		expect(t, w, "m", map[string]string{"Failed": "resource does not exist in discovery"})
	})
}

func TestAResourceThatCannotBeMigrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := begin(t)
		w.Client.Resources[0].APIResources = append(w.Client.Resources[0].APIResources, metav1.APIResource{Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}})
		ask(w, "m", metav1.GroupResource{Resource: "bindings"})
		expect(t, w, "m", map[string]string{"Failed": `resource "/v1, Resource=bindings" does not support discovery operations: [update patch list]`})
	})
}

// TestDefinitions show the migration, and forget versions in which nothing is kept.
func TestDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		changed, fails bool
		reason         string
		stored         []string
	}{
		"unchanged": {false, false, "MigrationSucceeded", []string{"v2"}},
		"changed":   {true, false, "MigrationSucceeded", []string{"v1", "v2"}},
		"failed":    {false, true, "MigrationFailed", []string{"v1", "v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, extensions := begin(t)
				// A definition that shadows a resource of the world: what counts is its name.
				definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "configmaps.", Generation: 3},
					Spec:   apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Storage: true}}},
					Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1", "v2"}}}
				if err := extensions.Tracker().Add(definition); err != nil {
					t.Fatal(err)
				}
				definitions := extensions.ApiextensionsV1().CustomResourceDefinitions()
				var seen []apiextensionsv1.ConditionStatus
				w.Client.PrependReactor("patch", "configmaps", func(a ktesting.Action) (bool, runtime.Object, error) {
					now, err := definitions.Get(t.Context(), "configmaps.", metav1.GetOptions{})
					if err != nil {
						t.Error(err)
						return false, nil, nil
					}
					for _, condition := range now.Status.Conditions {
						seen = append(seen, condition.Status)
					}
					if c.changed {
						now.Generation++
						_, err = definitions.Update(t.Context(), now, metav1.UpdateOptions{})
						return err != nil, nil, err
					}
					if c.fails {
						return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "a", nil)
					}
					return false, nil, nil
				})
				ask(w, "m", configMaps)
				if got := holds(t, w, "m"); (got[string(migrationv1.MigrationFailed)] != "") != c.fails || got["Running"] != "" {
					t.Errorf("%v", got)
				}
				got, err := definitions.Get(t.Context(), "configmaps.", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if len(seen) == 0 || seen[0] != apiextensionsv1.ConditionTrue || len(got.Status.Conditions) != 1 ||
					got.Status.Conditions[0].Status != apiextensionsv1.ConditionFalse || got.Status.Conditions[0].Reason != c.reason {
					t.Errorf("while it ran %v, then %v", seen, got.Status.Conditions)
				}
				if diff := cmp.Diff(c.stored, got.Status.StoredVersions); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
