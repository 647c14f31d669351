package authzconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	both   = "- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n"
)

// hookOf is the entry of a webhook that is asked about verbs other than get.
func hookOf(kubeconfig, policy string) string {
	return fmt.Sprintf(`- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    authorizedTTL: 30s
    unauthorizedTTL: 30s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions: [{expression: "request.resourceAttributes.verb != 'get'"}]
`, policy, kubeconfig)
}

// newHook serves a webhook that allows jane and denies eve, and returns a kubeconfig that leads to it.
func newHook(t *testing.T) (kubeconfig string, server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status.Allowed, review.Status.Denied = review.Spec.User == "jane", review.Spec.User == "eve"
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return write(t, "kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u", "user": {}}]}`, server.URL)), server
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// own allows ann all, and rob to get.
type own struct{ authorizer.AuthorizerFunc }

func newOwn() own {
	return own{func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if name := a.GetUser().GetName(); name == "ann" || name == "eve" || name == "rob" && a.GetVerb() == "get" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}}
}

// RulesFor implements authorizer.RuleResolver.
func (own) RulesFor(context.Context, user.Info, string) (r []authorizer.ResourceRuleInfo, n []authorizer.NonResourceRuleInfo, incomplete bool, err error) {
	return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{Verbs: []string{"get"}}}, nil, false, nil
}

func configOf(t *testing.T, text string) Config {
	t.Helper()
	return Config{
		File: write(t, "authorization.yaml", header+text), Own: newOwn(), Rules: newOwn(),
		Privileged: []string{"system:masters"}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func asks(name, verb string, groups ...string) authorizer.Attributes {
	return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: name, Groups: groups}, Verb: verb, Resource: "pods", ResourceRequest: true}
}

// TestOrder: a webhook is asked where the file says, about what it matches, and never about administrators.
func TestOrder(t *testing.T) {
	kubeconfig, server := newHook(t)
	const allow, deny, none = authorizer.DecisionAllow, authorizer.DecisionDeny, authorizer.DecisionNoOpinion
	for _, tc := range []struct {
		name, text string
		who        authorizer.Attributes
		want       authorizer.Decision
		broken     bool // nobody answers for the webhook
	}{
		{"before: allowed", hookOf(kubeconfig, "Deny") + both, asks("jane", "create"), allow, false},
		{"before: denied", hookOf(kubeconfig, "Deny") + both, asks("eve", "create"), deny, false},
		{"before: no opinion", hookOf(kubeconfig, "Deny") + both, asks("ann", "create"), allow, false},
		{"nobody allows", hookOf(kubeconfig, "Deny") + both, asks("rob", "create"), none, false},
		{"not asked: does not match", hookOf(kubeconfig, "Deny") + both, asks("jane", "get"), none, false},
		{"after: Setpoint allows", both + hookOf(kubeconfig, "Deny"), asks("eve", "create"), allow, false},
		{"after: allowed", both + hookOf(kubeconfig, "Deny"), asks("jane", "create"), allow, false},
		{"an administrator", hookOf(kubeconfig, "Deny") + both, asks("eve", "create", "system:masters"), allow, false},
		{"no answer, Deny", hookOf(kubeconfig, "Deny") + both, asks("ann", "create"), deny, true},
		{"no answer, NoOpinion", hookOf(kubeconfig, "NoOpinion") + both, asks("ann", "create"), allow, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.broken {
				server.Close()
			}
			a, err := New(configOf(t, tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := a.Authorize(t.Context(), tc.who); got != tc.want {
				t.Errorf("%s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

// TestMeasured: upstream's metrics count what a webhook answers.
func TestMeasured(t *testing.T) {
	kubeconfig, _ := newHook(t)
	a, err := New(configOf(t, strings.Replace(hookOf(kubeconfig, "Deny"), "name: hook", "name: measured", 1)+both))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Authorize(t.Context(), asks("jane", "create")); err != nil {
		t.Fatal(err)
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "apiserver_authorization_webhook_evaluations_total" && strings.Contains(fmt.Sprint(f), "measured") {
			return
		}
	}
	t.Error("the webhook's answer is not counted")
}

// TestRules: lists of what somebody may do are incomplete where a webhook is asked.
func TestRules(t *testing.T) {
	kubeconfig, _ := newHook(t)
	for text, want := range map[string]bool{both: false, both + hookOf(kubeconfig, "Deny"): true} {
		a, err := New(configOf(t, text))
		if err != nil {
			t.Fatal(err)
		}
		rules, _, incomplete, _ := a.RulesFor(t.Context(), &user.DefaultInfo{Name: "ann"}, "default")
		if incomplete != want || len(rules) != 1 {
			t.Errorf("%s: %v, incomplete: %v", text, rules, incomplete)
		}
	}
}

// TestRefusals: what cannot be honoured is refused by name.
func TestRefusals(t *testing.T) {
	kubeconfig, _ := newHook(t)
	hook := hookOf(kubeconfig, "Deny")
	for text, wrong := range map[string]string{
		both: "", hook + both: "", both + hook: "",
		"- {type: RBAC, name: rbac}\n":                                                   "authorizers: Node and RBAC must both be there",
		"- {type: Node, name: node}\n":                                                   "authorizers: Node and RBAC must both be there",
		"- {type: RBAC, name: rbac}\n- {type: Node, name: node}":                         "RBAC right after Node",
		"- {type: Node, name: node}\n" + hook + "- {type: RBAC, name: rbac}\n":           "RBAC right after Node",
		both + "- {type: AlwaysAllow, name: alwaysallow}\n":                              "authorizers[2]: type AlwaysAllow is refused: everybody would be",
		both + "- {type: AlwaysDeny, name: alwaysdeny}\n":                                "type AlwaysDeny is refused",
		both + "- {type: ABAC, name: abac}\n":                                            "type ABAC is refused: there are no policy files",
		both + "- {type: Other, name: other}\n":                                          `Unsupported value: "Other"`,
		"- {type: Node, name: mine}\n- {type: RBAC, name: rbac}":                         `an authorizer of type Node is called node, not "mine"`,
		both + strings.Replace(hook, "type: KubeConfigFile", "type: InClusterConfig", 1): "type InClusterConfig is refused: a server is no pod",
		both + strings.Replace(hook, "verb !=", "verb = !", 1):                           "matchConditions",
		"- {type: Node, name: node, nothing: 1}":                                         `unknown field "authorizers[0].nothing"`,
	} {
		_, err := parse([]byte(header+text), cel.NewDefaultCompiler())
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// TestReload: a changed file is in force after a while, and a wrong one never.
func TestReload(t *testing.T) {
	kubeconfig, _ := newHook(t)
	synctest.Test(t, func(t *testing.T) {
		config := configOf(t, both)
		a, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go a.Run(ctx)
		incomplete := func(text string) bool {
			if err := os.WriteFile(config.File, []byte(header+text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(reloadInterval)
			synctest.Wait()
			_, _, incomplete, _ := a.RulesFor(t.Context(), &user.DefaultInfo{}, "")
			return incomplete
		}
		if !incomplete(both + hookOf(kubeconfig, "Deny")) {
			t.Error("the new configuration is not in force")
		}
		if !incomplete(both + "- {type: ABAC, name: abac}") {
			t.Error("the former configuration is not in force")
		}
		if incomplete(both) {
			t.Error("the last configuration is not in force")
		}
		cancel()
		synctest.Wait()
	})
}

// TestAKubeconfigThatComesLater: it is told once that it is not there, and what names it is in force as soon as it is.
func TestAKubeconfigThatComesLater(t *testing.T) {
	kubeconfig, _ := newHook(t)
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(t.TempDir(), "kubeconfig")
	config, said := configOf(t, both), &strings.Builder{}
	config.Logger = slog.New(slog.NewTextHandler(said, nil))
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config.File, []byte(header+both+hookOf(later, "Deny")), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := a.file.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeConfigFile") {
			t.Errorf("without the kubeconfig: %v", err)
		}
	}
	if err := os.WriteFile(later, content, 0o600); err != nil {
		t.Fatal(err)
	}
	err = a.file.Look(t.Context())
	if _, _, incomplete, _ := a.RulesFor(t.Context(), &user.DefaultInfo{}, ""); err != nil || !incomplete {
		t.Errorf("with it: %v, in force: %v", err, incomplete)
	}
	if n := strings.Count(said.String(), "was not taken"); n != 1 {
		t.Errorf("told %d times: %s", n, said)
	}
}

// TestValidate names the file, and what is wrong in it or in those that it names.
func TestValidate(t *testing.T) {
	kubeconfig, _ := newHook(t)
	for text, want := range map[string]string{
		both + hookOf(kubeconfig, "Deny"): "", both + "- {type: ABAC, name: abac}": "authorization.yaml: authorizers[2]: type ABAC is refused",
		both + hookOf("/nowhere", "Deny"): "authorization.yaml: authorizers[2].connectionInfo.kubeConfigFile",
	} {
		if err := Validate(configOf(t, text).File); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v", text, err)
		}
	}
}
