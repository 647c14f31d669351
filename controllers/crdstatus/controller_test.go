package crdstatus

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// world runs the controller over the published fakes until the test ends.
type world struct {
	t        *testing.T
	client   *fake.Clientset
	metadata *metadatafake.FakeMetadataClient
}

func newWorld(t *testing.T, instances ...runtime.Object) *world {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: fake.NewClientset(), metadata: metadatafake.NewSimpleMetadataClient(scheme, instances...)}
	ctx, cancel := context.WithCancel(t.Context())
	factory := externalversions.NewSharedInformerFactory(w.client, 0)
	definitions := factory.Apiextensions().V1().CustomResourceDefinitions().Informer()
	factory.Start(ctx.Done())
	caches := reconciletest.New(t)
	caches.Serve(reconcile.CustomResourceDefinitions.Declaration().Resource, definitions)
	env := caches.Env()
	env.Extensions, env.Metadata = w.client, w.metadata
	ended := make(chan error)
	go func() {
		ended <- New().Start(ctx, env)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
	return w
}

// writes are the status and other updates of definitions so far.
func (w *world) writes() []string {
	synctest.Wait()
	var all []string
	for _, a := range w.client.Actions() {
		if update, ok := a.(clienttesting.UpdateActionImpl); ok {
			if manager := update.UpdateOptions.FieldManager; a.GetSubresource() == "status" && manager != "kube-apiserver" {
				w.t.Errorf("written by %q, upstream's is kube-apiserver", manager)
			}
			all = append(all, a.GetVerb()+" "+a.GetSubresource())
		}
	}
	w.client.ClearActions()
	return all
}

func (w *world) create(d *definition) {
	w.t.Helper()
	if _, err := w.client.ApiextensionsV1().CustomResourceDefinitions().Create(w.t.Context(), d, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string) *definition {
	w.t.Helper()
	d, err := w.client.ApiextensionsV1().CustomResourceDefinitions().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// TestNamesPassOn: a name goes to who waits for it when its owner goes, and a
// settled world is left alone.
func TestNamesPassOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(named("widgets/Widget/wg"))
		if diff := cmp.Diff([]string{"update status"}, w.writes()); diff != "" {
			t.Error(diff)
		}
		w.create(named("gadgets/Gadget/wg"))
		w.writes()
		if got := said(w.get("gadgets.x.example.com").Status); got[1] != notAccepted {
			t.Errorf("second: %q", got)
		}
		if err := w.client.ApiextensionsV1().CustomResourceDefinitions().Delete(t.Context(), "widgets.x.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.writes()
		if diff := cmp.Diff([]string{noConflicts, initial}, said(w.get("gadgets.x.example.com").Status)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Minute)
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("a settled world was written to: %v", writes)
		}
	})
}

// TestCleanUp: the finalizer stays until the last instance is gone.
func TestCleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "x.example.com/v1", Kind: "Gadget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "held", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"x.example.com/wait"}},
		}
		w := newWorld(t, held)
		d := accepted("gadgets/Gadget")
		d.DeletionTimestamp, d.Finalizers = new(metav1.Now()), []string{apiextensionsv1.CustomResourceCleanupFinalizer}
		w.create(d)
		time.Sleep(3 * time.Second)
		w.writes()
		if got := w.get(d.Name); len(got.Finalizers) != 1 || said(got.Status)[2] != "Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress" {
			t.Errorf("while one is held: %v %q", got.Finalizers, said(got.Status))
		}
		if err := w.metadata.Tracker().Delete(held.GroupVersionKind().GroupVersion().WithResource("gadgets"), "a", "held"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.get(d.Name); len(got.Finalizers) != 0 {
			t.Errorf("finalizers = %v", got.Finalizers)
		}
	})
}

// TestEndOfInstancesIsTold to whoever sees a definition that finalizers of others still hold.
func TestEndOfInstancesIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		d    *definition
		want string
	}{
		"established":       {accepted("gadgets/Gadget"), "Terminating=False InstanceDeletionCompleted: removed all instances"},
		"never established": {named("gadgets/Gadget"), "Terminating=False NeverEstablished: resource was never established"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if name == "never established" {
					w.create(accepted("widgets/Gadget")) // has its name
				}
				c.d.DeletionTimestamp = new(metav1.Now())
				c.d.Finalizers = []string{apiextensionsv1.CustomResourceCleanupFinalizer, "x.example.com/wait"}
				w.create(c.d)
				w.writes()
				got := w.get(c.d.Name)
				if diff := cmp.Diff([]string{"x.example.com/wait"}, got.Finalizers); diff != "" {
					t.Error(diff)
				}
				if all := said(got.Status); !slices.Contains(all, c.want) {
					t.Errorf("%q", all)
				}
				time.Sleep(time.Minute)
				if writes := w.writes(); len(writes) > 0 {
					t.Errorf("written to again: %v", writes)
				}
			})
		})
	}
}
