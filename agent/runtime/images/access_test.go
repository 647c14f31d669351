package images

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const private1 = "quay.io/team/app:v1"

func loginSecret(uid types.UID, user string) *corev1.Secret {
	secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"username":"` + user + `","password":"x"}}}`)}}
	secret.UID = uid
	return secret
}

func podWith(namespace string, secrets ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.UID = namespace, types.UID(namespace)
	for _, s := range secrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	return pod
}

// TestAPresentImageIsNotEverybodys: the registry decides again for who did not pull it.
func TestAPresentImageIsNotEverybodys(t *testing.T) {
	r := &registry{wants: "owner"}
	secrets := map[string]*corev1.Secret{"good": loginSecret("1", "owner"), "copy": loginSecret("2", "owner"), "bad": loginSecret("3", "stranger")}
	p := newPuller(t, r, secrets)
	ensure := func(pod *corev1.Pod, policy corev1.PullPolicy) error {
		_, err := p.Ensure(t.Context(), pod, &corev1.Container{Image: private1, ImagePullPolicy: policy}, nil)
		return err
	}
	if err := ensure(podWith("owner", "good"), corev1.PullIfNotPresent); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		policy  corev1.PullPolicy
		allowed bool
		asks    bool
	}{
		"the same secret":                {podWith("owner", "good"), corev1.PullIfNotPresent, true, false},
		"the same login":                 {podWith("friend", "copy"), corev1.PullIfNotPresent, true, false},
		"the same login, never":          {podWith("friend", "copy"), corev1.PullNever, true, false},
		"no secret":                      {podWith("thief"), corev1.PullIfNotPresent, false, true},
		"no secret, never":               {podWith("quiet thief"), corev1.PullNever, false, false},
		"another login":                  {podWith("stranger", "bad"), corev1.PullIfNotPresent, false, true},
		"another login, then a good one": {podWith("both", "bad", "copy"), corev1.PullIfNotPresent, true, false},
	} {
		before := r.pulls
		err := ensure(c.pod, c.policy)
		if (err == nil) != c.allowed || (r.pulls > before) != c.asks {
			t.Errorf("%s: %v, %d pulls; want allowed %t, asked %t", name, err, r.pulls-before, c.allowed, c.asks)
		}
	}
	secrets["good"] = loginSecret("1", "renamed") // the Secret got a new login, the image stays its namespace's
	before := r.pulls
	if err := ensure(podWith("owner", "good"), corev1.PullIfNotPresent); err != nil || r.pulls > before {
		t.Errorf("the same secret with another login: %v", err)
	}
	p = New(p.Config) // a restart
	if err := ensure(podWith("thief again"), corev1.PullIfNotPresent); err == nil {
		t.Error("a restart made the image everybody's")
	}
}

func TestAnImageByAnotherNameIsAskedFor(t *testing.T) {
	r := &registry{wants: "owner"}
	p := newPuller(t, r, map[string]*corev1.Secret{"good": loginSecret("1", "owner")})
	if _, err := p.Ensure(t.Context(), podWith("owner", "good"), &corev1.Container{Image: private1}, nil); err != nil {
		t.Fatal(err)
	}
	present := &runtimeapi.Image{Id: private1}
	for name, allowed := range map[string]bool{private1: true, "quay.io/team/app:v2": true, "quay.io/team/other:v1": false, "sha256:0123456789abcdef": false} {
		if got := p.mayUse(t.Context(), podWith("owner", "good"), present, name); got != allowed {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestACrashWhilePullingKeepsAnImagePrivate: the pull began, the runtime has the image, and nobody noted by whose login.
func TestACrashWhilePullingKeepsAnImagePrivate(t *testing.T) {
	r := &registry{wants: "owner"}
	p := newPuller(t, r, nil)
	if err := p.access().begin(private1); err != nil {
		t.Fatal(err)
	}
	r.local[private1] = true
	if _, err := p.Ensure(t.Context(), podWith("thief"), &corev1.Container{Image: private1, ImagePullPolicy: corev1.PullNever}, nil); err == nil {
		t.Error("allowed by its name")
	}
	if p.mayUse(t.Context(), podWith("thief"), &runtimeapi.Image{Id: "x", RepoTags: []string{private1}}, "x") {
		t.Error("allowed by another name")
	}
}

func TestADamagedRecordAllowsNobody(t *testing.T) {
	r := &registry{}
	p := newPuller(t, r, nil)
	if _, err := p.Ensure(t.Context(), podWith("a"), &corev1.Container{Image: private1}, nil); err != nil {
		t.Fatal(err)
	}
	records, _ := filepath.Glob(filepath.Join(p.Dir, "*"))
	if len(records) != 1 {
		t.Fatalf("records %v; want that of the image only", records)
	}
	if err := os.WriteFile(records[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.access().allows(&runtimeapi.Image{Id: private1}, private1, Verification{}, podCredentials{secrets: func() []credential { return nil }}) {
		t.Error("allowed")
	}
	if _, err := p.Ensure(t.Context(), podWith("a"), &corev1.Container{Image: private1}, nil); err != nil || r.pulls != 2 {
		t.Errorf("%d pulls, %v", r.pulls, err)
	}
	if !p.access().allows(&runtimeapi.Image{Id: private1}, private1, Verification{}, podCredentials{secrets: func() []credential { return nil }}) {
		t.Error("the pull did not mend the record")
	}
	delete(r.local, private1) // the image goes, and with the next pull its record
	if _, err := p.Ensure(t.Context(), podWith("a"), &corev1.Container{Image: "quay.io/team/next:v1"}, nil); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, "*")); len(left) != 1 {
		t.Errorf("records left: %v", left)
	}
}

// accounts are all that are asked for.
type accounts struct{}

func (accounts) ServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}, nil
}

func (accounts) AccountToken(context.Context, *corev1.Pod, *corev1.ServiceAccount, string) (string, time.Time, error) {
	return "token", time.Now().Add(time.Hour), nil
}

// TestAnImageByAnAccountsTokenIsThatAccounts: the plugin's answer is not every pod's on the node.
func TestAnImageByAnAccountsTokenIsThatAccounts(t *testing.T) {
	r := &registry{wants: "account"}
	p := newPuller(t, r, nil)
	p.Accounts, p.Plugins = accounts{}, pluginThatSays(t, "account",
		", tokenAttributes: {serviceAccountTokenAudience: registry, cacheType: ServiceAccount, requireServiceAccount: true}")
	ensure := func(namespace, account string) (pulls int, err error) {
		pod := podWith(namespace)
		pod.Spec.ServiceAccountName = account
		before := r.pulls
		_, err = p.Ensure(t.Context(), pod, &corev1.Container{Image: "example.com/team/app:1"}, nil)
		return r.pulls - before, err
	}
	for _, c := range []struct {
		namespace, account string
		pulls              int
		allowed            bool
	}{
		{"a", "robot", 1, true},
		{"a", "robot", 0, true},
		{"b", "robot", 1, true}, // the registry decides, and its plugin has a login for this account too
		{"a", "", 1, false},
		{"b", "robot", 0, true},
	} {
		if pulls, err := ensure(c.namespace, c.account); pulls != c.pulls || (err == nil) != c.allowed {
			t.Errorf("%s/%s: %d pulls, %v; want %d, allowed %t", c.namespace, c.account, pulls, err, c.pulls, c.allowed)
		}
	}
}
