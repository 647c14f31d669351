package jointoken

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// Whom a token lets in.
const (
	ForAgents  = "agent"
	ForServers = "server"
)

const (
	// ServersDefault is how many servers a token lets in if nobody says otherwise, ServersMax the most that may be asked for.
	ServersDefault = 4
	ServersMax     = 16

	// askAgain is how long a server that was let in may ask again, in case that it did not get the answer.
	askAgain = 10 * time.Minute

	// sealKey is where the Secret of a token for servers has its seal.
	sealKey     = "setpoint-server-seal"
	sealPurpose = "server token"
)

// ErrServers says that a token was asked for that lets in too many servers, or none.
var ErrServers = fmt.Errorf("--nodes must be from 1 to %d for servers", ServersMax)

func isServers(secret *corev1.Secret) bool { return len(secret.Data[sealKey]) > 0 }

// CreateServer makes a token that lets servers join from now on.
func CreateServer(ctx context.Context, client kubernetes.Interface, ca *trust.CA, wanted Wanted, now time.Time) (*Token, error) {
	if err := ValidateServer(wanted); err != nil {
		return nil, err
	}
	token, err := tokens.New(tokens.RoleServer, ca.Pin())
	if err != nil {
		return nil, err
	}
	secret := secretOf(token, wanted, now)
	delete(secret.Data, bootstrapapi.BootstrapTokenSecretKey)
	delete(secret.Data, bootstrapapi.BootstrapTokenUsageAuthentication)
	if secret.Data[sealKey], err = seal(ca, secret, token); err != nil {
		return nil, err
	}
	if secret, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	made := read(secret)
	made.Token = token.Text()
	return &made, nil
}

// ValidateServer says what is wrong with what is wanted of a token for servers.
func ValidateServer(wanted Wanted) error {
	switch {
	case wanted.TTL < minLife || wanted.TTL > MaxLife:
		return ErrLife
	case wanted.Nodes < 1 || wanted.Nodes > ServersMax:
		return ErrServers
	}
	return nil
}

// seal proves that a server has made the token, with this end and this number of servers.
func seal(ca *trust.CA, secret *corev1.Secret, token tokens.Token) ([]byte, error) {
	sum, err := ca.Seal(sealPurpose, sealed(secret, token))
	return encodedSeal(sum), err
}

// sealed is what the proof is over.
func sealed(secret *corev1.Secret, token tokens.Token) []byte {
	return []byte(strings.Join([]string{
		token.Secret, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]), string(secret.Data[nodesMaxKey]),
	}, "\n"))
}

func encodedSeal(sum []byte) []byte { return []byte(hex.EncodeToString(sum)) }

// AdmitServer fails with join.ErrServerTokenRefused unless the token lets servers in now.
func AdmitServer(ctx context.Context, client kubernetes.Interface, ca *trust.CA, token tokens.Token, now time.Time) error {
	_, err := admitted(ctx, client, ca, token, now)
	return err
}

// admitted is the Secret of a token that lets servers in now.
func admitted(ctx context.Context, client kubernetes.Interface, ca *trust.CA, token tokens.Token, now time.Time) (*corev1.Secret, error) {
	if token.Role != tokens.RoleServer || !ca.Holds(token.Pin) {
		return nil, join.ErrServerTokenRefused
	}
	name := bootstrapapi.BootstrapTokenSecretPrefix + token.ID()
	secret, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, join.ErrServerTokenRefused
	}
	if err != nil {
		return nil, err
	}
	end, ends := time.Parse(time.RFC3339, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	isOurs := ca.HasSealed(sealPurpose, sealed(secret, token), secret.Data[sealKey], encodedSeal)
	if !isOurs || ends != nil || !now.Before(end) || secret.DeletionTimestamp != nil {
		return nil, join.ErrServerTokenRefused
	}
	return secret, nil
}

// TakeServer counts a server for the token, once. It fails as AdmitServer does; with join.ErrNoMoreServers beyond the token's number; with
// join.ErrLetInBefore where the server was let in longer than askAgain ago, so that a token that was used up gives nothing later; and with
// join.ErrServerNameTaken where the token has let in another server of that name, which has another address.
func TakeServer(
	ctx context.Context, client kubernetes.Interface, ca *trust.CA, token tokens.Token, server trust.Server, now time.Time,
) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret, err := admitted(ctx, client, ca, token, now)
		if err != nil {
			return err
		}
		taken, err := taking(namesOf(secret), nodesMaxOf(secret), server, now)
		if err != nil || taken == nil {
			return err
		}
		secret.Data[nodeNamesKey] = []byte(strings.Join(taken, ","))
		_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// taking are the servers that a token has let in with one more, nil if it is among them.
func taking(taken []string, most int, server trust.Server, now time.Time) ([]string, error) {
	for _, other := range taken {
		name, rest, _ := strings.Cut(other, "=")
		address, when, _ := strings.Cut(rest, "=")
		if name != server.Name {
			continue
		}
		if address != server.Endpoint {
			return nil, fmt.Errorf("%w: the token let in %s at %s", join.ErrServerNameTaken, name, address)
		}
		if seconds, err := strconv.ParseInt(when, 10, 64); err != nil || now.After(time.Unix(seconds, 0).Add(askAgain)) {
			return nil, fmt.Errorf("%w, more than %s ago: make another with 'setpoint token create --for server'", join.ErrLetInBefore, askAgain)
		}
		return nil, nil
	}
	if len(taken) >= most {
		return nil, fmt.Errorf("%w (%s): make another with 'setpoint token create --for server', --nodes says for how many",
			join.ErrNoMoreServers, strconv.Itoa(most))
	}
	return append(taken, fmt.Sprintf("%s=%s=%d", server.Name, server.Endpoint, now.Unix())), nil
}

// IsMistake reports whether what was wanted cannot be: a mistake of who asks.
func IsMistake(err error) bool {
	return slices.ContainsFunc([]error{ErrLife, ErrNodes, ErrServers, ErrID}, func(mistake error) bool { return errors.Is(err, mistake) })
}
