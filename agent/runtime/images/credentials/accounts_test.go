package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	credentialv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// accountsOf are service accounts by name, each in every namespace; it counts the tokens that it gives.
type accountsOf struct {
	annotations map[string]map[string]string
	tokens      int
}

func (a *accountsOf) ServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	annotations, ok := a.annotations[name]
	if !ok {
		return nil, errors.New("not found")
	}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name, account.UID, account.Annotations = namespace, name, types.UID("uid of "+name), annotations
	return account, nil
}

func (a *accountsOf) AccountToken(_ context.Context, pod *corev1.Pod, account *corev1.ServiceAccount, audience string) (string, time.Time, error) {
	a.tokens++
	return fmt.Sprintf("token of %s for %s in %s to %s", account.Name, audience, pod.Name, account.UID), time.Now().Add(time.Hour), nil
}

func podOf(name, account string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: account}}
	pod.Namespace, pod.Name, pod.UID = "ns", name, types.UID("uid of "+name)
	return pod
}

// withTokens is a provider with tokenAttributes.
func withTokens(cacheType, more string) string {
	return head + provider("one", ", tokenAttributes: {serviceAccountTokenAudience: registry, cacheType: "+cacheType+more+"}")
}

const (
	accountNeeded  = ", requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [example.com/role], optionalServiceAccountAnnotationKeys: [note]"
	accountAllowed = ", requireServiceAccount: false, optionalServiceAccountAnnotationKeys: [note]"
	oneLogin       = `"*.example.com":{"username":"a","password":"b"}`
)

func TestAPluginGetsATokenOfThePodsAccount(t *testing.T) {
	accounts := &accountsOf{annotations: map[string]map[string]string{"robot": {"example.com/role": "puller", "other": "secret"}, "plain": nil}}
	p, dir := plugins(t, withTokens("ServiceAccount", accountNeeded), map[string]string{"one": answering("Image", "", oneLogin)})
	got, err := p.Logins(t.Context(), "x.example.com/app", Asker{podOf("a", "robot"), accounts})
	if err != nil || len(got) != 1 || *got[0].Account != (Account{"ns", "robot", "uid of robot"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "requests"))
	var request credentialv1.CredentialProviderRequest
	if err != nil || json.Unmarshal(text, &request) != nil {
		t.Fatalf("%s, %v", text, err)
	}
	if request.ServiceAccountToken != "token of robot for registry in a to uid of robot" || len(request.ServiceAccountAnnotations) != 1 ||
		request.ServiceAccountAnnotations["example.com/role"] != "puller" {
		t.Errorf("the plugin was told %+v", request)
	}
	for _, account := range []string{"", "plain"} { // the annotation is how a workload says that it wants this
		if got, err := p.Logins(t.Context(), "x.example.com/app", Asker{podOf("b", account), accounts}); got != nil || err != nil || runs(t, dir) != 1 {
			t.Errorf("account %q: %v, %v, %d runs", account, got, err, runs(t, dir))
		}
	}
	if _, err := p.Logins(t.Context(), "x.example.com/app", Asker{podOf("b", "gone"), accounts}); err == nil || !strings.Contains(err.Error(), "service account: not found") {
		t.Errorf("an account that is gone: %v", err)
	}
}

func TestAPodWithoutAccountIsTheNodes(t *testing.T) {
	p, dir := plugins(t, withTokens("Token", accountAllowed), map[string]string{"one": answering("Image", "", oneLogin)})
	got, err := p.Logins(t.Context(), "x.example.com/app", Asker{podOf("static", ""), &accountsOf{}})
	if err != nil || len(got) != 1 || got[0].Account != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "requests")); strings.Contains(string(text), "serviceAccount") {
		t.Errorf("the plugin was told %s", text)
	}
}

// TestAnswersAreTheAccounts: of one account, or with cacheType Token of one pod, and of no other.
func TestAnswersAreTheAccounts(t *testing.T) {
	for cacheType, want := range map[string][4]int{"ServiceAccount": {1, 1, 2, 3}, "Token": {1, 2, 3, 4}} {
		accounts := &accountsOf{annotations: map[string]map[string]string{"robot": nil, "other": nil}}
		p, dir := plugins(t, withTokens(cacheType, accountAllowed), map[string]string{"one": answering("Global", "", oneLogin)})
		for i, pod := range []*corev1.Pod{podOf("a", "robot"), podOf("b", "robot"), podOf("a", "other"), podOf("a", "")} {
			for range 2 {
				if _, err := p.Logins(t.Context(), "x.example.com/app", Asker{pod, accounts}); err != nil || runs(t, dir) != want[i] {
					t.Errorf("%s, %s of %q: %d runs, %v, want %d", cacheType, pod.Name, pod.Spec.ServiceAccountName, runs(t, dir), err, want[i])
				}
			}
		}
		if tokens := want[2]; accounts.tokens != tokens {
			t.Errorf("%s: %d tokens, want %d", cacheType, accounts.tokens, tokens)
		}
	}
}

// TestAnAnswerEndsWithItsToken: after four fifths of the hour for which tokens are good.
func TestAnAnswerEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accounts := &accountsOf{annotations: map[string]map[string]string{"robot": nil}}
		p, dir := plugins(t, withTokens("Token", accountAllowed), map[string]string{"one": answering("Image", "10h", oneLogin)})
		for i, want := range []int{1, 1, 2} {
			if _, err := p.Logins(t.Context(), "x.example.com/a", Asker{podOf("a", "robot"), accounts}); err != nil || runs(t, dir) != want {
				t.Errorf("request %d: %d runs, %v, want %d", i, runs(t, dir), err, want)
			}
			time.Sleep(30 * time.Minute)
		}
	})
}

// TestATokenIsNoPasswordOfAnAccount: it is bound to one pod.
func TestATokenIsNoPasswordOfAnAccount(t *testing.T) {
	const echo = `"*.example.com":{"username":"a","password":"token of robot for registry in a to uid of robot"}`
	for cacheType, allowed := range map[string]bool{"ServiceAccount": false, "Token": true} {
		accounts := &accountsOf{annotations: map[string]map[string]string{"robot": nil}}
		p, _ := plugins(t, withTokens(cacheType, accountAllowed), map[string]string{"one": answering("Image", "", echo)})
		_, err := p.Logins(t.Context(), "x.example.com/a", Asker{podOf("a", "robot"), accounts})
		if allowed != (err == nil) || err != nil && (!errors.Is(err, errEcho) || strings.Contains(err.Error(), "token of robot")) {
			t.Errorf("%s: %v", cacheType, err)
		}
	}
}

func TestTokenAttributesThatAreRefused(t *testing.T) {
	for attributes, want := range map[string]string{
		"cacheType: Token, requireServiceAccount: true":                                                  "serviceAccountTokenAudience: want the audience",
		"serviceAccountTokenAudience: a, requireServiceAccount: true":                                    "cacheType: want ServiceAccount or Token",
		"serviceAccountTokenAudience: a, cacheType: Pod, requireServiceAccount: true":                    "cacheType: want ServiceAccount or Token",
		"serviceAccountTokenAudience: a, cacheType: Token":                                               "requireServiceAccount: want true or false",
		withKeys("requiredServiceAccountAnnotationKeys: [x], requireServiceAccount: false"):              "requiredServiceAccountAnnotationKeys: want nothing if",
		withKeys("requiredServiceAccountAnnotationKeys: [x, x]"):                                         "requiredServiceAccountAnnotationKeys: want names",
		withKeys("optionalServiceAccountAnnotationKeys: ['a b']"):                                        "optionalServiceAccountAnnotationKeys: want names",
		withKeys("requiredServiceAccountAnnotationKeys: [x], optionalServiceAccountAnnotationKeys: [x]"): "optionalServiceAccountAnnotationKeys: want none that is required",
	} {
		file, dir := write(t, head+provider("one", ", tokenAttributes: {"+attributes+"}"), map[string]string{"one": "exit 0"})
		if _, err := Read(file, dir); err == nil || !strings.Contains(err.Error(), "providers[0].tokenAttributes."+want) {
			t.Errorf("%s: %v, want %s", attributes, err, want)
		}
	}
}

func withKeys(keys string) string {
	if !strings.Contains(keys, "requireServiceAccount") {
		keys += ", requireServiceAccount: true"
	}
	return "serviceAccountTokenAudience: a, cacheType: Token, " + keys
}
