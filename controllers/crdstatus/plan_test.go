package crdstatus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// named is a definition with "plural/kind/short" as names, of the group x.example.com.
func named(names string) *definition {
	parts := strings.Split(names, "/")
	return &definition{
		ObjectMeta: metav1.ObjectMeta{Name: parts[0] + ".x.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "x.example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: parts[0], Singular: strings.TrimSuffix(parts[0], "s"), Kind: parts[1], ListKind: parts[1] + "List", ShortNames: parts[2:],
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
		},
	}
}

func accepted(names string) *definition {
	d := named(names)
	d.Status = plan(d, nil)
	return d
}

func said(status apiextensionsv1.CustomResourceDefinitionStatus) []string {
	var all []string
	for _, c := range status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return all
}

const (
	noConflicts = "NamesAccepted=True NoConflicts: no conflicts found"
	initial     = "Established=True InitialNamesAccepted: the initial names have been accepted"
	notAccepted = "Established=False NotAccepted: not all names are accepted"
)

func TestNames(t *testing.T) {
	renamed := accepted("gadgets/Gadget")
	renamed.Spec.Names.ShortNames = []string{"wg"}
	for name, c := range map[string]struct {
		definition *definition
		others     []*definition
		want       []string
		plural     string
	}{
		"fresh":          {named("gadgets/Gadget/gd"), nil, []string{noConflicts, initial}, "gadgets"},
		"beside":         {named("gadgets/Gadget/gd"), []*definition{accepted("widgets/Widget/wg")}, []string{noConflicts, initial}, "gadgets"},
		"plural":         {named("wg/Gadget"), []*definition{accepted("widgets/Widget/wg")}, []string{`NamesAccepted=False SingularConflict: "wg" is already in use`, notAccepted}, ""},
		"short":          {named("gadgets/Gadget/wg"), []*definition{accepted("widgets/Widget/wg")}, []string{`NamesAccepted=False ShortNamesConflict: "wg" is already in use`, notAccepted}, "gadgets"},
		"kind":           {named("gadgets/WidgetList"), []*definition{accepted("widgets/Widget")}, []string{`NamesAccepted=False KindConflict: "WidgetList" is already in use`, notAccepted}, "gadgets"},
		"short and kind": {named("gadgets/WidgetList/wg"), []*definition{accepted("widgets/Widget/wg")}, []string{`NamesAccepted=False KindConflict: "WidgetList" is already in use`, notAccepted}, "gadgets"},
		"all":            {named("widgets/Widget/wg"), []*definition{accepted("widgets/Widget/wg")}, []string{`NamesAccepted=False ListKindConflict: "WidgetList" is already in use`, notAccepted}, ""},
		"two short":      {named("gadgets/Gadget/wg/ws"), []*definition{accepted("widgets/Widget/wg/ws")}, []string{`NamesAccepted=False ShortNamesConflict: ["wg" is already in use, "ws" is already in use]`, notAccepted}, "gadgets"},
		"not its own":    {named("gadgets/Gadget"), []*definition{named("gadgets/Gadget")}, []string{noConflicts, initial}, "gadgets"},
		"stays":          {renamed, []*definition{accepted("widgets/Widget/wg")}, []string{`NamesAccepted=False ShortNamesConflict: "wg" is already in use`, initial}, "gadgets"},
	} {
		t.Run(name, func(t *testing.T) {
			status := plan(c.definition, c.others)
			if diff := cmp.Diff(c.want, said(status)); diff != "" {
				t.Error(diff)
			}
			if status.AcceptedNames.Plural != c.plural {
				t.Errorf("plural = %q", status.AcceptedNames.Plural)
			}
			again := c.definition.DeepCopy()
			again.Status = status
			if diff := cmp.Diff(status, plan(again, c.others)); diff != "" {
				t.Errorf("planned twice:\n%s", diff)
			}
		})
	}
}

// A conversion webhook that cannot be trusted keeps a definition from becoming established, and takes nothing from one that is.
func TestInvalidCABundle(t *testing.T) {
	const invalid = "Established=False InvalidCABundle: The conversion webhook CABundle is invalid"
	with := func(d *definition, bundle string) *definition {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte(bundle)}},
		}
		return d
	}
	refused := with(named("gadgets/Gadget"), "no certificate")
	refused.Status = plan(refused, nil)
	for name, c := range map[string]struct {
		definition *definition
		want       string
	}{
		"new":         {with(named("gadgets/Gadget"), "no certificate"), invalid},
		"established": {with(accepted("gadgets/Gadget"), "no certificate"), initial},
		"none":        {with(named("gadgets/Gadget"), ""), initial},
		"mended":      {with(refused.DeepCopy(), ""), initial},
		"taken":       {with(named("wg/Gadget"), "no certificate"), notAccepted},
	} {
		if got := said(plan(c.definition, []*definition{accepted("widgets/Widget/wg")})); got[1] != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestOtherConditions(t *testing.T) {
	old := named("gadgets/Gadget")
	old.Spec.PreserveUnknownFields = true
	broken := named("gadgets/Gadget")
	broken.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {}},
	}}
	community := func(annotation string) *definition {
		d := named("gadgets/Gadget")
		d.Spec.Group = "x.k8s.io"
		if annotation != "" {
			d.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: annotation}
		}
		return d
	}
	for name, c := range map[string]struct {
		definition *definition
		want       string
	}{
		"preserve":   {old, `NonStructuralSchema=True Violations: spec.preserveUnknownFields: Invalid value: true: must be false`},
		"schema":     {broken, `NonStructuralSchema=True Violations: spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields`},
		"approved":   {community("https://github.com/kubernetes/kubernetes/pull/1"), `KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation: approved in https://github.com/kubernetes/kubernetes/pull/1`},
		"unapproved": {community("unapproved, experimental-only"), `KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation: not approved: "unapproved, experimental-only"`},
		"missing":    {community(""), `KubernetesAPIApprovalPolicyConformant=False MissingAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`},
	} {
		if got := said(plan(c.definition, nil)); len(got) != 3 || got[2] != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
