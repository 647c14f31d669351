package setpoint_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
)

// onlyOwnNode lets a service account write ConfigMaps that have the name of the node of its pod only.
func onlyOwnNode() (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	name := metav1.ObjectMeta{Name: "only-own-node"}
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "restricted", Expression: `request.userInfo.username == "system:serviceaccount:default:default"`}},
		Variables: []admissionregistrationv1.Variable{
			{Name: "node", Expression: `request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')`},
			{Name: "name", Expression: `(request.operation == 'DELETE' ? oldObject : object).?metadata.name.orValue('')`},
		},
		Validations: []admissionregistrationv1.Validation{
			{Expression: `variables.node != ""`, Message: "no node"},
			{Expression: `variables.node == variables.name`, MessageExpression: `"a user of " + variables.node + " may not write " + variables.name`},
		},
	}}
	return policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
}

// TestPolicyByNode: what upstream's end-to-end test of that name does with one ConfigMap of the user's node and one of another.
func TestPolicyByNode(t *testing.T) {
	_, access := started(t, setpoint.Config{})
	admin := kubernetes.NewForConfigOrDie(access)
	as := func(node ...string) typedcorev1.ConfigMapInterface {
		user := rest.CopyConfig(access)
		user.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:default", Groups: []string{"system:masters"}}
		user.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=1"}} // as each token has
		if len(node) > 0 {
			user.Impersonate.Extra["authentication.kubernetes.io/node-name"] = node
		}
		return kubernetes.NewForConfigOrDie(user).CoreV1().ConfigMaps("default")
	}
	policy, binding := onlyOwnNode()
	_, err := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	wantError(t, "the policy", err, "")
	_, err = admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	wantError(t, "the binding", err, "")
	own, other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	const foreign, nodeless = "a user of n1 may not write n2", "no node"
	create := func(by typedcorev1.ConfigMapInterface, what *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		return by.Create(t.Context(), what, metav1.CreateOptions{})
	}
	until(t, "the policy is in force", func() bool {
		_, err := as("n1").Create(t.Context(), other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	created, err := create(as("n1"), own)
	wantError(t, "create its own", err, "")
	_, err = create(as("n1"), other)
	wantError(t, "create another's", err, foreign)
	there, err := create(admin.CoreV1().ConfigMaps("default"), other)
	wantError(t, "create it as somebody else", err, "")
	_, err = as("n1").Update(t.Context(), created, metav1.UpdateOptions{})
	wantError(t, "update its own", err, "")
	_, err = as("n1").Update(t.Context(), there, metav1.UpdateOptions{})
	wantError(t, "update another's", err, foreign)
	wantError(t, "delete another's", as("n1").Delete(t.Context(), "n2", metav1.DeleteOptions{}), foreign)
	wantError(t, "delete all", as("n1").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}), foreign)
	_, err = create(as(), there)
	wantError(t, "create one that is there, without a node", err, nodeless)
	_, err = create(as(), created)
	wantError(t, "create one that was there, without a node", err, nodeless)
	wantError(t, "delete without a node", as().Delete(t.Context(), "n2", metav1.DeleteOptions{}), nodeless)
}

// wantError fails unless the error has the text in it; an empty text wants none.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}
