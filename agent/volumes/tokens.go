package volumes

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	token          string
	renew, expires time.Time
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

// addToken adds the file of a token.
func (m *Manager) addToken(
	ctx context.Context,
	in Input,
	files map[string]file,
	volume string,
	p *corev1.ServiceAccountTokenProjection,
	mode *int32,
) error {
	seconds := int64(3600)
	if p.ExpirationSeconds != nil {
		seconds = *p.ExpirationSeconds
	}
	have, err := m.token(ctx, in.Pod, tokenKey{in.Pod.UID, volume, p.Path}, p.Audience, seconds)
	if err != nil {
		return err
	}
	files[p.Path] = privateFile(in.Pod, []byte(have.token), mode)
	return nil
}

// token issues a token or reuses one with more than a fifth of its life left.
func (m *Manager) token(ctx context.Context, pod *corev1.Pod, k tokenKey, audience string, seconds int64) (issued, error) {
	m.tokens.mu.Lock()
	have, ok := m.tokens.tokens[k]
	m.tokens.mu.Unlock()
	now := time.Now()
	if ok && now.Before(have.renew) {
		return have, nil
	}
	token, expires, err := m.Objects.Token(ctx, pod, audience, seconds)
	if err != nil {
		return issued{}, err
	}
	have = issued{token: token, renew: now.Add(expires.Sub(now) * 4 / 5), expires: expires}
	m.tokens.mu.Lock()
	m.tokens.tokens[k] = have
	m.tokens.mu.Unlock()
	return have, nil
}
