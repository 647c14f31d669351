package clusterobjects

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	extensionsfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var wanted = &Objects{
	PriorityClasses: []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}}, {ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}},
	},
	Levels:         slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations),
	Schemas:        slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas),
	ServiceCIDRs:   []string{"10.43.0.0/16"},
	Authentication: func() (map[string]string, error) { return map[string]string{"client-ca-file": "pem"}, nil },
}

// writes counts what changed since the last call.
func writes(client *fake.Clientset) (created, updated int) {
	for _, action := range client.Actions() {
		switch action.(type) {
		case clienttesting.CreateActionImpl:
			created++
		case clienttesting.UpdateActionImpl:
			updated++
		}
	}
	client.ClearActions()
	return created, updated
}

func ensureAnd(t *testing.T, client *fake.Clientset, wantCreated, wantUpdated int, what string) {
	t.Helper()
	client.ClearActions()
	if err := ensure(t.Context(), client, wanted, time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if created, updated := writes(client); created != wantCreated || updated != wantUpdated {
		t.Errorf("%s: %d created, %d updated, want %d and %d", what, created, updated, wantCreated, wantUpdated)
	}
}

// 2 priority classes, 2 + 6 levels, 2 + 9 schemas, 1 range, 2 ConfigMaps.
const objects = 24

func TestObjectsAreMadeOnce(t *testing.T) {
	client := fake.NewClientset()
	ensureAnd(t, client, objects, 1, "empty cluster") // the range's status
	ensureAnd(t, client, 0, 0, "unchanged cluster")
	for _, remove := range []error{
		client.SchedulingV1().PriorityClasses().Delete(t.Context(), "system-node-critical", metav1.DeleteOptions{}),
		client.FlowcontrolV1().FlowSchemas().Delete(t.Context(), "probes", metav1.DeleteOptions{}),
	} {
		if remove != nil {
			t.Fatal(remove)
		}
	}
	ensureAnd(t, client, 2, 0, "two deleted")
}

func TestMaintainedObjectsAreRestored(t *testing.T) {
	for name, test := range map[string]struct {
		annotation  string
		generation  int64
		wantUpdated int
	}{
		"maintained":       {"true", 5, 2},
		"left alone":       {"false", 1, 0},
		"never touched":    {"", 1, 2},
		"touched":          {"", 2, 0},
		"touched, unclear": {"perhaps", 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Generation: test.generation, Annotations: map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: test.annotation}}
			schema, level := &flowcontrolv1.FlowSchema{ObjectMeta: meta}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta}
			exempt := level.DeepCopy()
			schema.Name, level.Name, exempt.Name = "probes", "system", flowcontrolv1.PriorityLevelConfigurationNameExempt
			client := fake.NewClientset([]runtime.Object{schema, level, exempt}...)
			ensureAnd(t, client, objects-3, test.wantUpdated+1, "changed by hand") // the status of the range
		})
	}
}

func TestOthersKeysStay(t *testing.T) {
	theirs := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: authenticationConfig},
		Data:       map[string]string{"theirs": "kept", "client-ca-file": "old"},
	}
	client := fake.NewClientset(theirs)
	ensureAnd(t, client, objects-1, 2, "a ConfigMap of before") // and the range's status
	have, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), authenticationConfig, metav1.GetOptions{})
	if want := map[string]string{"theirs": "kept", "client-ca-file": "pem"}; err != nil || !maps.Equal(have.Data, want) {
		t.Errorf("%v, %v, want %v", have.Data, err, want)
	}
}

// TestWhatIsDeletedComesBack runs the whole controller.
func TestWhatIsDeletedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := fake.NewClientset()
		w := reconciletest.New(t)
		informers := crdinformers.NewSharedInformerFactory(extensionsfake.NewClientset(), 0)
		w.Serve(reconcile.CustomResourceDefinitions.Declaration().Resource, informers.Apiextensions().V1().CustomResourceDefinitions().Informer())
		informers.StartWithContext(ctx)
		defer informers.Shutdown()
		defer stop()
		env := w.Env()
		env.Client = client
		ended := make(chan error)
		changed, told := make(chan struct{}, 1), "pem"
		kept := *wanted
		kept.Changed, kept.Authentication = changed, func() (map[string]string, error) { return map[string]string{"client-ca-file": told}, nil }
		go func() {
			ended <- New(&kept).Start(ctx, env)
		}()
		synctest.Wait()
		classes := client.SchedulingV1().PriorityClasses()
		if err := classes.Delete(ctx, "system-node-critical", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(interval)
		synctest.Wait()
		if _, err := classes.Get(ctx, "system-node-critical", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		told = "another pem"
		changed <- struct{}{}
		synctest.Wait() // no time has passed
		tells, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfig, metav1.GetOptions{})
		if err != nil || tells.Data["client-ca-file"] != told {
			t.Errorf("aggregated servers are told %v, %v", tells, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestTrackingBeginsOnce: a date stays, what is none becomes today.
func TestTrackingBeginsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		data        map[string]string
		wantUpdated int
		want        string
	}{
		"a date":      {map[string]string{"since": "2029-12-31"}, 0, "2029-12-31"},
		"none":        {nil, 1, "2030-01-02"},
		"no date":     {map[string]string{"since": "yesterday", "theirs": "kept"}, 1, "2030-01-02"},
		"a date, too": {map[string]string{"since": "2031-01-01"}, 0, "2031-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: tokenTracking}, Data: c.data})
			ensureAnd(t, client, objects-1, c.wantUpdated+1, "tracked before") // and the range's status
			have, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), tokenTracking, metav1.GetOptions{})
			if err != nil || have.Data["since"] != c.want || have.Data["theirs"] != c.data["theirs"] {
				t.Errorf("%v, %v", have.Data, err)
			}
		})
	}
}

func TestARangeThatTheFlagsDoNotHaveIsTold(t *testing.T) {
	client, events := fake.NewClientset(), &reconciletest.Events{}
	ensureAnd(t, client, objects, 1, "empty cluster")
	ranges := &inconsistency{env: &reconcile.Env{Client: client, Events: events}, flags: wanted.ServiceCIDRs}
	tell := func(what string, want ...string) {
		t.Helper()
		if err := ranges.tell(t.Context()); err != nil || !slices.Equal(events.List(), want) {
			t.Errorf("%s: %v, %v", what, events.List(), err)
		}
	}
	tell("as the flags say")
	own, err := client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own.Spec.CIDRs = append(own.Spec.CIDRs, "fd96::/112")
	if _, err := client.NetworkingV1().ServiceCIDRs().Update(t.Context(), own, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	const told = "Warning KubernetesDefaultServiceCIDRInconsistent " +
		"The default ServiceCIDR [10.43.0.0/16 fd96::/112] does not match the controller flag configurations [10.43.0.0/16]"
	tell("another range", told)
	tell("it was said")
}
