package auth

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// What a Secret of a bootstrap token is called and holds, as upstream has it.
const (
	bootstrapSecretType   = corev1.SecretType("bootstrap.kubernetes.io/token")
	bootstrapSecretPrefix = "bootstrap-token-"
	bootstrapUserPrefix   = "system:bootstrap:"
	bootstrapGroup        = "system:bootstrappers"
)

var (
	bootstrapToken  = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)
	bootstrapGroups = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

	errBootstrapToken = errors.New("the bootstrap token is unknown, has expired, or may not be used to authenticate")
)

// BootstrapTokens knows the short tokens by which machines ask for their first
// certificate (kubeadm's form). Each is a Secret in kube-system. Setpoint's own join
// tokens are such tokens too.
type BootstrapTokens struct{ store *storage.Store }

var _ authenticator.Token = BootstrapTokens{}

// NewBootstrapTokens returns an authenticator over the Secrets in the store.
func NewBootstrapTokens(store *storage.Store) BootstrapTokens { return BootstrapTokens{store} }

// Admits reports whether a token lets machines join at this moment, on whatever server it
// was made or deleted. An error says that this cannot be found out now.
func (b BootstrapTokens) Admits(ctx context.Context, token tokens.Token) (bool, error) {
	secret, err := b.secret(ctx, token.ID(), "")
	if err != nil || secret == nil {
		return false, err
	}
	return opens(secret, token.ID(), token.Key(), b.store.Now()), nil
}

// secret is nil if there is no such token.
func (b BootstrapTokens) secret(ctx context.Context, id, version string) (*corev1.Secret, error) {
	found, err := b.store.Table(corev1.SchemeGroupVersion.WithResource(secretResource)).
		Get(ctx, metav1.NamespaceSystem, bootstrapSecretPrefix+id, version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found.Object().(*corev1.Secret), nil
}

// AuthenticateToken implements authenticator.Token. What does not look like a
// bootstrap token is left to others.
func (b BootstrapTokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	parts := bootstrapToken.FindStringSubmatch(token)
	if parts == nil {
		return nil, false, nil
	}
	for _, version := range []string{"0", ""} { // what this replica has not, it may not have yet
		secret, err := b.secret(ctx, parts[1], version)
		if err != nil {
			return nil, false, err
		}
		if secret != nil && opens(secret, parts[1], parts[2], b.store.Now()) {
			return &authenticator.Response{User: bootstrapUser(secret, parts[1])}, true, nil
		}
	}
	return nil, false, errBootstrapToken
}

// opens reports whether the secret is that of the token and is good for this use.
func opens(secret *corev1.Secret, id, key string, now time.Time) bool {
	if secret.Type != bootstrapSecretType || secret.DeletionTimestamp != nil || string(secret.Data["token-id"]) != id ||
		!tokens.SameSecret(secret.Data["token-secret"], []byte(key)) || string(secret.Data["usage-bootstrap-authentication"]) != "true" {
		return false
	}
	text := string(secret.Data["expiration"])
	if text == "" {
		return true
	}
	end, err := time.Parse(time.RFC3339, text)
	return err == nil && now.Before(end)
}

func bootstrapUser(secret *corev1.Secret, id string) user.Info {
	groups := []string{bootstrapGroup}
	for g := range strings.SplitSeq(string(secret.Data["auth-extra-groups"]), ",") {
		if bootstrapGroups.MatchString(g) {
			groups = append(groups, g)
		}
	}
	return &user.DefaultInfo{Name: bootstrapUserPrefix + id, Groups: groups}
}
