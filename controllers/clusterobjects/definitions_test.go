package clusterobjects

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionsfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func defined(name, version, bundled string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{versionAnnotation: version, bundledAnnotation: bundled}},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Group: "of " + version},
	}
}

// TestDefinitions: what is missing is made, what was made by an older server follows, and what others installed stays.
func TestDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := reconciletest.New(t)
		client := extensionsfake.NewClientset(
			defined("old", "v1.6.2", "v1.6.2"), defined("theirs", "v1.5.0", ""), defined("replaced", "v1.5.0", "v1.6.2"), defined("newer", "v1.7.0", "v1.7.0"),
		)
		informers := crdinformers.NewSharedInformerFactory(client, 0)
		w.Serve(reconcile.CustomResourceDefinitions.Declaration().Resource, informers.Apiextensions().V1().CustomResourceDefinitions().Informer())
		informers.StartWithContext(ctx)
		env := w.Env()
		env.Extensions = client
		parsed := 0
		objects := *wanted
		objects.Definitions = func() (all []*apiextensionsv1.CustomResourceDefinition, _ error) {
			parsed++
			for _, name := range []string{"missing", "old", "theirs", "replaced", "newer"} {
				all = append(all, defined(name, "v1.6.3", ""))
			}
			return all, nil
		}
		ended := make(chan error)
		go func() { ended <- New(&objects).Start(ctx, env) }()
		time.Sleep(10 * interval)
		definitions := client.ApiextensionsV1().CustomResourceDefinitions()
		for name, want := range map[string]string{
			"missing": "v1.6.3", "old": "v1.6.3", "theirs": "v1.5.0", "replaced": "v1.5.0", "newer": "v1.7.0",
		} {
			have, err := definitions.Get(ctx, name, metav1.GetOptions{})
			if err != nil || have.Annotations[versionAnnotation] != want || have.Spec.Group != "of "+want {
				t.Errorf("%s: %+v, %v", name, have, err)
			}
		}
		if parsed != 1 {
			t.Errorf("parsed %d times", parsed)
		}
		if err := definitions.Delete(ctx, "missing", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * interval)
		if _, err := definitions.Get(ctx, "missing", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		informers.Shutdown()
	})
}
