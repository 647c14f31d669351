package auth

import (
	"context"
	"crypto/subtle"
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
)

// What a Secret of a bootstrap token is called and holds, as upstream has it.
const (
	bootstrapSecretType   corev1.SecretType = "bootstrap.kubernetes.io/token"
	bootstrapSecretPrefix                   = "bootstrap-token-"
	bootstrapUserPrefix                     = "system:bootstrap:"
	bootstrapGroup                          = "system:bootstrappers"
)

var (
	bootstrapToken  = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)
	bootstrapGroups = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

	errBootstrapToken = errors.New("the bootstrap token is unknown, has expired, or may not be used to authenticate")
)

// bootstrapTokens knows the short tokens by which machines ask for their first
// certificate (kubeadm's form). Each is a Secret in kube-system.
type bootstrapTokens struct{ store *storage.Store }

// NewBootstrapTokens returns an authenticator over the Secrets in the store.
func NewBootstrapTokens(store *storage.Store) authenticator.Token { return bootstrapTokens{store} }

// AuthenticateToken implements authenticator.Token. What does not look like a
// bootstrap token is left to others.
func (b bootstrapTokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	parts := bootstrapToken.FindStringSubmatch(token)
	if parts == nil {
		return nil, false, nil
	}
	for _, version := range []string{"0", ""} { // what this replica has not, it may not have yet
		found, err := b.store.Table(corev1.SchemeGroupVersion.WithResource(secretResource)).Get(ctx, metav1.NamespaceSystem, bootstrapSecretPrefix+parts[1], version)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, false, err
		}
		if err != nil {
			continue
		}
		if secret := found.Object().(*corev1.Secret); opens(secret, parts[1], parts[2], time.Now()) {
			return &authenticator.Response{User: bootstrapUser(secret, parts[1])}, true, nil
		}
	}
	return nil, false, errBootstrapToken
}

// opens reports whether the secret is that of the token and is good for this use.
func opens(secret *corev1.Secret, id, key string, now time.Time) bool {
	if secret.Type != bootstrapSecretType || secret.DeletionTimestamp != nil || string(secret.Data["token-id"]) != id ||
		subtle.ConstantTimeCompare(secret.Data["token-secret"], []byte(key)) == 0 || string(secret.Data["usage-bootstrap-authentication"]) != "true" {
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
