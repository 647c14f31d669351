package revocations

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

// listOf is the list with entries, which are made of targets.
func listOf(t *testing.T, targets ...string) *corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: revocation.ConfigMapName}, Data: map[string]string{},
	}
	for _, text := range targets {
		target, err := revocation.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		entry := revocation.Entry{Target: target, At: time.Unix(1e9, 0)}
		list.Data[entry.DataKey()] = entry.Text()
	}
	return list
}

// TestWhoWritesTheListAndWhat: administrators, entries, and neither themselves nor a server that the cluster needs.
func TestWhoWritesTheListAndWhat(t *testing.T) {
	p := Plugin{
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == "admin" && a.GetResource() == "revocations" && a.GetAPIGroup() == "setpoint.io" && a.GetVerb() == "update" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
		Server: func(_ context.Context, name string, revoked func(string) bool) error {
			if !revoked(name) || revoked("needed") && name == "needed" {
				return errors.New("needed")
			}
			return nil
		},
	}
	damaged, binary, other := listOf(t, "node/a"), listOf(t), listOf(t)
	damaged.Data["node.x"] = "no entry"
	binary.BinaryData = map[string][]byte{"node.x": {1}}
	other.Name, other.Data = "other", map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		who     string
		is, old *corev1.ConfigMap
		refused string
	}{
		"a node":                      {"admin", listOf(t, "node/a"), nil, ""},
		"by somebody":                 {"jane", listOf(t, "node/a"), nil, "administrators"},
		"undone":                      {"admin", listOf(t), listOf(t, "node/a"), ""},
		"undone by somebody":          {"jane", listOf(t), listOf(t, "node/a"), "administrators"},
		"all undone":                  {"admin", nil, listOf(t, "node/a"), ""},
		"all undone by somebody":      {"jane", nil, listOf(t, "node/a"), "administrators"},
		"no entry":                    {"admin", damaged, nil, "not an entry"},
		"binary data":                 {"admin", binary, nil, "no binary data"},
		"himself":                     {"admin", listOf(t, "user/admin"), nil, "shut yourself out"},
		"himself, by another, before": {"admin", listOf(t, "user/admin", "node/a"), listOf(t, "user/admin"), ""},
		"a server":                    {"admin", listOf(t, "server/s"), nil, ""},
		"a server that is needed":     {"admin", listOf(t, "server/needed"), nil, "needed"},
		"another ConfigMap":           {"jane", other, nil, ""},
	} {
		attributes := func() admission.Attributes {
			resource, kind := corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithKind("ConfigMap")
			who := &user.DefaultInfo{Name: c.who}
			switch {
			case c.is == nil: // one of a collection, which has no name
				return admission.NewAttributesRecord(nil, c.old, kind, metav1.NamespaceSystem, "", resource, "", admission.Delete, nil, false, who)
			case c.old == nil:
				return admission.NewAttributesRecord(c.is, nil, kind, metav1.NamespaceSystem, c.is.Name, resource, "", admission.Create, nil, false, who)
			}
			return admission.NewAttributesRecord(c.is, c.old, kind, metav1.NamespaceSystem, c.is.Name, resource, "", admission.Update, nil, false, who)
		}
		err := p.Validate(t.Context(), attributes(), nil)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
