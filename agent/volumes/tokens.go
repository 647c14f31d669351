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
	files[p.Path] = privateFile(in.Pod, []byte(have.token), mode)
	return nil
}
