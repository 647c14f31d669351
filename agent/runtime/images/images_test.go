package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/images/credentials"
)

// registry is an image service with one registry behind it.
type registry struct {
	criapi.ImageManagerService
	mu     sync.Mutex
	local  map[string]bool
	err    error
	took   time.Duration
	wants  string // the user name without which nothing is given; "": none
	auths  []*runtimeapi.AuthConfig
	pulls  int
	atOnce int
	most   int
}

func (r *registry) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.local[spec.Image] {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: spec.Image}}, nil
}

func (r *registry) PullImage(_ context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	r.mu.Lock()
	r.pulls++
	r.atOnce++
	r.most = max(r.most, r.atOnce)
	r.auths = append(r.auths, auth)
	r.mu.Unlock()
	time.Sleep(r.took)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atOnce--
	if r.err == nil && r.wants != "" && auth.GetUsername() != r.wants {
		return "", errors.New("unauthorized")
	}
	if r.err == nil {
		r.local[spec.Image] = true
	}
	return spec.Image, r.err
}

func (r *registry) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.Image
	for id := range r.local {
		list = append(list, &runtimeapi.Image{Id: id})
	}
	return list, nil
}

func newPuller(t *testing.T, r *registry, secrets map[string]*corev1.Secret) *Puller {
	t.Helper()
	r.local = map[string]bool{"local": true}
	return New(Config{Service: r, Events: record.NewFakeRecorder(1000), Dir: t.TempDir(), Secret: func(_ context.Context, _, name string) (*corev1.Secret, error) {
		if s := secrets[name]; s != nil {
			return s, nil
		}
		return nil, errors.New("not found")
	}})
}

func TestPolicies(t *testing.T) {
	for _, tc := range []struct {
		image  string
		policy corev1.PullPolicy
		reason string
		pulls  int
	}{
		{"local", corev1.PullIfNotPresent, "", 0}, {"local", corev1.PullAlways, "", 1}, {"local", corev1.PullNever, "", 0},
		{"remote", corev1.PullIfNotPresent, "", 1}, {"remote", corev1.PullNever, ReasonNeverPull, 0}, {"remote", "", "", 1},
		{"Not A Name", corev1.PullAlways, ReasonInvalidName, 0},
	} {
		r := &registry{}
		_, err := newPuller(t, r, nil).Ensure(t.Context(), &corev1.Pod{}, &corev1.Container{Image: tc.image, ImagePullPolicy: tc.policy}, nil)
		reason := ""
		if e, ok := errors.AsType[*Error](err); ok {
			reason = e.Reason
		}
		if reason != tc.reason || r.pulls != tc.pulls {
			t.Errorf("%s %s: reason %q, %d pulls; want %q, %d", tc.image, tc.policy, reason, r.pulls, tc.reason, tc.pulls)
		}
	}
}

func TestBackOffAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{err: errors.New("refused")}
		p, c := newPuller(t, r, nil), &corev1.Container{Image: "remote"}
		ensure := func() *Error {
			_, err := p.Ensure(t.Context(), &corev1.Pod{}, c, nil)
			e, _ := errors.AsType[*Error](err)
			return e
		}
		if e := ensure(); e == nil || e.Reason != ReasonPull || e.Retry != 10*time.Second {
			t.Errorf("first: %v", e)
		}
		time.Sleep(4 * time.Second)
		if e := ensure(); e == nil || e.Reason != ReasonBackOff || e.Retry != 6*time.Second || r.pulls != 1 {
			t.Errorf("second: %v, %d pulls", e, r.pulls)
		}
		time.Sleep(6 * time.Second)
		if e := ensure(); e == nil || e.Reason != ReasonPull || e.Retry != 20*time.Second || r.pulls != 2 {
			t.Errorf("third: %v, %d pulls", e, r.pulls)
		}
		other := &corev1.Pod{}
		other.UID = "another"
		r.err = nil
		if _, err := p.Ensure(t.Context(), other, c, nil); err != nil {
			t.Errorf("another pod tries at once: %v", err)
		}
	})
}

func TestPullsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{took: time.Second}
		p := newPuller(t, r, nil)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				image := "remote" + string(rune('a'+i/2)) // each image twice
				if _, err := p.Ensure(t.Context(), &corev1.Pod{}, &corev1.Container{Image: image}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if r.most > DefaultPullsMax {
			t.Errorf("%d pulls at once, limit %d", r.most, DefaultPullsMax)
		}
	})
}

// TestOneNamespaceLeavesAPull: a registry that never ends its answers keeps those who use it waiting, and nobody else; who waits for a
// place does not keep others from the image that he wants.
func TestOneNamespaceLeavesAPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{took: time.Hour}
		p := newPuller(t, r, nil)
		pull := func(namespace, image string) (err error) {
			pod := &corev1.Pod{}
			pod.Namespace = namespace
			_, err = p.Ensure(t.Context(), pod, &corev1.Container{Image: image}, nil)
			return err
		}
		var all sync.WaitGroup
		for i := range 3 * DefaultPullsMax {
			all.Go(func() {
				if err := pull("greedy", fmt.Sprint("remote", i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first ones have the places
		}
		if r.most != DefaultPullsMax-1 {
			t.Errorf("one namespace has %d pulls", r.most)
		}
		began := time.Now()
		for _, namespace := range []string{"other", "kube-system"} {
			if err := pull(namespace, fmt.Sprint("remote", 3*DefaultPullsMax-1)); err != nil {
				t.Error(err)
			}
			if namespace == "other" && time.Since(began) > time.Hour {
				t.Errorf("another namespace had to wait for %v", time.Since(began)-time.Hour)
			}
		}
		all.Wait()
	})
}

func TestPullSecrets(t *testing.T) {
	secrets := map[string]*corev1.Secret{
		"good":   {Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io/team":{"auth":"dXNlcjpwYXNz"},"other.io":{"username":"x"}}}`)}},
		"broken": {Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{`)}},
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "missing"}, {Name: "broken"}, {Name: "good"}}}}
	r := &registry{}
	p := newPuller(t, r, secrets)
	if _, err := p.Ensure(t.Context(), pod, &corev1.Container{Image: "quay.io/team/app:v1"}, nil); err != nil {
		t.Fatal(err)
	}
	if len(r.auths) != 1 || r.auths[0].GetUsername() != "user" || r.auths[0].GetPassword() != "pass" {
		t.Errorf("auths = %v", r.auths)
	}
	r.auths = nil
	if _, err := p.Ensure(t.Context(), pod, &corev1.Container{Image: "quay.io/teammate/app:v1"}, nil); err != nil {
		t.Fatal(err)
	}
	if len(r.auths) != 1 || r.auths[0] != nil {
		t.Errorf("a login of another path was used: %v", r.auths)
	}
}

// TestMissingSecretsAreTold when a pull fails, and not when it succeeds without them.
func TestMissingSecretsAreTold(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "one"}, {Name: "there"}, {Name: "two"}}}}
	const want = "Warning FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (one, two); attempting to pull the image may not succeed."
	for _, c := range []struct {
		err   error
		times int
	}{{nil, 0}, {errors.New("unauthorized"), 1}} {
		p := newPuller(t, &registry{err: c.err}, map[string]*corev1.Secret{"there": {}})
		_, _ = p.Ensure(t.Context(), pod, &corev1.Container{Image: "remote"}, nil)
		recorder, told := p.Events.(*record.FakeRecorder), 0
		for len(recorder.Events) > 0 {
			if <-recorder.Events == want {
				told++
			}
		}
		if told != c.times {
			t.Errorf("the pull ends with %v: told %d times, want %d", c.err, told, c.times)
		}
	}
}

// pluginThatSays is one whose login for example.com is user; more is of its configuration.
func pluginThatSays(t *testing.T, user, more string) *credentials.Plugins {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
echo '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"Image","auth":{"example.com":{"username":"` + user + `"}}}'
`
	config := `{apiVersion: kubelet.config.k8s.io/v1, kind: CredentialProviderConfig, providers: [
{name: plugin, matchImages: [example.com], apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 1m` + more + `}]}`
	file := filepath.Join(dir, "config.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "plugin"), []byte(script), 0o755), os.WriteFile(file, []byte(config), 0o644)); err != nil {
		t.Fatal(err)
	}
	plugins, err := credentials.Read(file, dir)
	if err != nil {
		t.Fatal(err)
	}
	return plugins
}

// TestPluginsAreAskedAfterSecrets: what a plugin's credentials brought is everybody's on the node.
func TestPluginsAreAskedAfterSecrets(t *testing.T) {
	r := &registry{wants: "node"}
	secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"example.com":{"username":"pod"}}}`)}}
	p := newPuller(t, r, map[string]*corev1.Secret{"own": secret})
	p.Plugins = pluginThatSays(t, "node", "")
	const image = "example.com/team/app:1"
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "owner", UID: "1"}}
	owner.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "own"}}
	for _, pod := range []*corev1.Pod{owner, {ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "other", UID: "2"}}} {
		if _, err := p.Ensure(t.Context(), pod, &corev1.Container{Image: image}, nil); err != nil {
			t.Errorf("%s: %v", pod.Name, err)
		}
	}
	var shown []string
	for _, auth := range r.auths {
		shown = append(shown, auth.GetUsername())
	}
	if !slices.Equal(shown, []string{"pod", "node"}) {
		t.Errorf("the registry was shown %q", shown)
	}
}
