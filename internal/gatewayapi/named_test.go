package gatewayapi

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestNamed: an object is followed while it is wanted, and read once in each version.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		var reads, changes atomic.Int32
		errOdd := errors.New("odd")
		read := func(m *corev1.ConfigMap) (string, error) {
			reads.Add(1)
			if m.Data["a"] == "odd" {
				return "", errOdd
			}
			return m.Data["a"], nil
		}
		n := NamedConfigMaps(client, read, func() { changes.Add(1) }, slog.New(slog.NewTextHandler(t.Output(), nil)))
		expect := func(what, want string, final bool, wantErr error) {
			t.Helper()
			synctest.Wait()
			if got, known, err := n.Value("x", "m"); got != want || known != final || !errors.Is(err, wantErr) {
				t.Errorf("%s: %q, %t, %v", what, got, known, err)
			}
		}
		expect("not wanted", "", false, ErrUnknown)
		n.Want(t.Context(), []types.NamespacedName{{Namespace: "x", Name: "m"}})
		expect("missing", "", true, ErrUnknown)
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "m", ResourceVersion: "1"}, Data: map[string]string{"a": "one"}}
		if _, err := client.CoreV1().ConfigMaps("x").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("made", "one", true, nil)
		expect("again", "one", true, nil)
		if reads.Load() != 1 || changes.Load() != 1 {
			t.Errorf("%d reads, %d changes", reads.Load(), changes.Load())
		}
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "m", ResourceVersion: "2"}, Data: map[string]string{"a": "odd"}}
		if _, err := client.CoreV1().ConfigMaps("x").Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("changed", "", true, errOdd)
		n.Stop()
		expect("wanted no more", "", false, ErrUnknown)
	})
}

// TestAuthorities: a node may read the ConfigMaps of policies once there is a Gateway of ours, and no others.
func TestAuthorities(t *testing.T) {
	policy := &v1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "x"}}
	policy.Spec.Validation.CACertificateRefs = []v1.LocalObjectReference{{Kind: "ConfigMap", Name: "b"}, {Kind: "ConfigMap", Name: "a"}, {Kind: "Secret", Name: "c"}}
	o := Objects{BackendTLSPolicies: []*v1.BackendTLSPolicy{policy, policy}}
	if got := o.Named("configmaps"); len(got) != 0 {
		t.Errorf("%v without a Gateway", got)
	}
	o.Classes = []*v1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: v1.GatewayClassSpec{ControllerName: Controller}}}
	o.Gateways = []*v1.Gateway{{Spec: v1.GatewaySpec{GatewayClassName: "ours"}}}
	if got := o.Named("configmaps"); len(got) != 2 || got[0].String() != "x/a" || got[1].String() != "x/b" || len(o.Named("secrets")) != 0 {
		t.Errorf("%v", got)
	}
}

// TestSecretNames: those of listeners that ListenerSets add to a Gateway of ours are read, too, and are of their own namespaces.
func TestSecretNames(t *testing.T) {
	set := &v1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x"}}
	home := v1.Namespace("home")
	set.Spec.ParentRef.Name, set.Spec.ParentRef.Namespace = "g", &home
	set.Spec.Listeners = []v1.ListenerEntry{{TLS: &v1.ListenerTLSConfig{
		CertificateRefs: []v1.SecretObjectReference{{Name: "own"}, {Name: "theirs", Namespace: &home}},
	}}}
	o := Objects{
		Classes: []*v1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: v1.GatewayClassSpec{ControllerName: Controller}}}, ListenerSets: []*v1.ListenerSet{set},
	}
	if got := o.Named("secrets"); len(got) != 0 {
		t.Errorf("%v without the Gateway", got)
	}
	o.Gateways = []*v1.Gateway{{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "g"}, Spec: v1.GatewaySpec{GatewayClassName: "ours"}}}
	if got := o.Named("secrets"); len(got) != 1 || got[0].String() != "x/own" {
		t.Errorf("%v", got)
	}
}

// TestANamespaceDoesNotTakeAll: names of a greedy namespace are cut, its youngest first, and those of others are followed whenever they come.
func TestANamespaceDoesNotTakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		n := NamedConfigMaps(client, func(m *corev1.ConfigMap) (string, error) { return m.Data["a"], nil }, func() {}, slog.New(slog.DiscardHandler))
		var names []types.NamespacedName
		for i := range NamedMax + 100 {
			names = append(names, types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint(i)})
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "m", ResourceVersion: "1"}, Data: map[string]string{"a": "one"}}
		if _, err := client.CoreV1().ConfigMaps("other").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		n.Want(t.Context(), append(names, names[0], types.NamespacedName{Namespace: "other", Name: "m"}))
		synctest.Wait()
		if got, known, err := n.Value("other", "m"); got != "one" || !known || err != nil {
			t.Errorf("another namespace's: %q, %t, %v", got, known, err)
		}
		if _, known, err := n.Value("greedy", "0"); !known || !errors.Is(err, ErrUnknown) {
			t.Errorf("the first of the greedy one: %t, %v", known, err)
		}
		if _, known, err := n.Value("greedy", fmt.Sprint(NamedMax)); !known || !errors.Is(err, ErrCut) {
			t.Errorf("one that is too many: %t, %v", known, err)
		}
		if n.Followed() != NamedMax || n.Cut() != 101 {
			t.Errorf("%d are followed, %d cut", n.Followed(), n.Cut())
		}
		n.Stop()
	})
}
