package volumes

import (
	"context"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tokenMode is upstream's for a token nobody but its owner needs.
const tokenMode = 0o600

// tokenCache keeps issued tokens until most of their life is over.
type tokenCache struct {
	mu     *sync.Mutex
	tokens map[tokenKey]issued
}

type tokenKey struct {
	pod          types.UID
	volume, path string
}

type issued struct {
	token string
	renew time.Time
}

func newTokenCache() tokenCache {
	return tokenCache{mu: &sync.Mutex{}, tokens: map[tokenKey]issued{}}
}

func (c tokenCache) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.tokens {
		if k.pod == uid {
			delete(c.tokens, k)
		}
	}
}

// addToken issues a token or reuses one with more than a fifth of its life left.
func (m *Manager) addToken(
	ctx context.Context,
	in Input,
	files map[string]file,
	volume string,
	p *corev1.ServiceAccountTokenProjection,
	mode *int32,
) error {
	k := tokenKey{in.Pod.UID, volume, p.Path}
	m.tokens.mu.Lock()
	have, ok := m.tokens.tokens[k]
	m.tokens.mu.Unlock()
	if now := time.Now(); !ok || !now.Before(have.renew) {
		seconds := int64(3600)
		if p.ExpirationSeconds != nil {
			seconds = *p.ExpirationSeconds
		}
		token, expires, err := m.Objects.Token(ctx, in.Pod, p.Audience, seconds)
		if err != nil {
			return err
		}
		have = issued{token: token, renew: now.Add(expires.Sub(now) * 4 / 5)}
		m.tokens.mu.Lock()
		m.tokens.tokens[k] = have
		m.tokens.mu.Unlock()
	}
	files[p.Path] = file{[]byte(have.token), tokenFileMode(in.Pod, mode)}
	return nil
}

// tokenFileMode lets only root read, unless the pod runs as someone else.
func tokenFileMode(pod *corev1.Pod, mode *int32) os.FileMode {
	if fsGroup(pod) != nil || runsAsUser(pod) {
		return fileMode(nil, mode)
	}
	if mode != nil && *mode != defaultFileMode {
		return os.FileMode(*mode)
	}
	return tokenMode
}

func runsAsUser(pod *corev1.Pod) bool {
	if sc := pod.Spec.SecurityContext; sc != nil && sc.RunAsUser != nil {
		return true
	}
	for i := range pod.Spec.Containers {
		if sc := pod.Spec.Containers[i].SecurityContext; sc != nil && sc.RunAsUser != nil {
			return true
		}
	}
	return false
}
