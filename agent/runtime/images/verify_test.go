package images

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhichImagesAreVerified(t *testing.T) {
	named := Verification{VerifyAllButNamed, []string{"quay.io/team/*", "docker.io/library/busybox"}}
	for _, c := range []struct {
		v      Verification
		image  string
		pulled bool
		want   bool
	}{
		{Verification{}, "a", false, false}, {Verification{}, "a", true, true},
		{Verification{Policy: VerifyPulled}, "a", true, true},
		{Verification{Policy: VerifyNever}, "a", true, false},
		{Verification{Policy: VerifyAlways}, "a", false, true},
		{named, "quay.io/team/app:v1", true, false}, {named, "quay.io/teams/app", false, true},
		{named, "busybox:1.37", true, false}, {named, "docker.io/library/busybox@sha256:" + strings.Repeat("a", 64), false, false},
		{named, "evil/busybox", false, true},
	} {
		if got := c.v.needed(c.image, c.pulled); got != c.want {
			t.Errorf("%s of %s, pulled %v: %v", c.v.Policy, c.image, c.pulled, got)
		}
	}
}

func TestWhichVerificationsAreRefused(t *testing.T) {
	for _, c := range []struct {
		v    Verification
		want string
	}{
		{Verification{}, ""},
		{Verification{Policy: "Sometimes"}, `imagePullCredentialsVerificationPolicy: "Sometimes"`},
		{Verification{VerifyAlways, []string{"a"}}, "preloadedImagesVerificationAllowlist: may be set with"},
		{Verification{VerifyAllButNamed, nil}, "preloadedImagesVerificationAllowlist: must name images"},
		{Verification{VerifyAllButNamed, []string{"a", "b:1"}}, "preloadedImagesVerificationAllowlist[1]"},
		{Verification{VerifyAllButNamed, []string{"a*"}}, "preloadedImagesVerificationAllowlist[0]"},
		{Verification{VerifyAllButNamed, []string{"a.io/*/b"}}, "preloadedImagesVerificationAllowlist[0]"},
		{Verification{VerifyAllButNamed, []string{"/*"}}, "preloadedImagesVerificationAllowlist[0]"},
	} {
		err := c.v.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.v, err)
		}
	}
}

// TestThePolicyDecidesWhetherTheRegistryIsAsked for an image that lies here.
func TestThePolicyDecidesWhetherTheRegistryIsAsked(t *testing.T) {
	for policy, pulls := range map[Verify]int{VerifyPulled: 0, VerifyAlways: 1, VerifyNever: 0} {
		r := &registry{}
		p := newPuller(t, r, nil)
		p.Verification = Verification{Policy: policy}
		for range 2 { // what the registry gave without credentials is everybody's from then on
			if _, err := p.Ensure(t.Context(), &corev1.Pod{}, &corev1.Container{Image: "local"}, nil); err != nil {
				t.Errorf("%s: %v", policy, err)
			}
		}
		if r.pulls != pulls {
			t.Errorf("%s: %d pulls, want %d", policy, r.pulls, pulls)
		}
	}
}
