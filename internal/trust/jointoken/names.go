package jointoken

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/setpoint-io/setpoint/internal/trust/join"
)

const (
	// NodesDefault is how many names of nodes a token takes if nobody says otherwise, NodesMax the most that may be asked for.
	NodesDefault = 100
	NodesMax     = 1000

	// The Secret of a token says how many names it takes, and which it took, with commas between them.
	nodesMaxKey  = "setpoint-nodes-max"
	nodeNamesKey = "setpoint-node-names"
)

// ErrNodes says that a token was asked for that takes too many names, or none.
var ErrNodes = fmt.Errorf("--nodes must be from 1 to %d", NodesMax)

// Take counts the name of a node for the token with an id. One that it took before counts once. Beyond the token's number it fails with
// join.ErrNoMoreNames; a token that is gone takes none.
func Take(ctx context.Context, client kubernetes.Interface, id, node string) error {
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret, err := secrets.Get(ctx, bootstrapapi.BootstrapTokenSecretPrefix+id, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: it has ended", join.ErrNoMoreNames)
		}
		if err != nil {
			return err
		}
		taken, most := namesOf(secret), nodesMaxOf(secret)
		switch {
		case slices.Contains(taken, node):
			return nil
		case len(taken) >= most:
			return fmt.Errorf("%w (%d): make another with 'setpoint token create', --nodes says for how many", join.ErrNoMoreNames, most)
		}
		secret.Data[nodeNamesKey] = []byte(strings.Join(append(taken, node), ","))
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// namesOf are the names that a token took.
func namesOf(secret *corev1.Secret) []string {
	return strings.FieldsFunc(string(secret.Data[nodeNamesKey]), func(r rune) bool { return r == ',' })
}

// nodesMaxOf is NodesDefault for a token that does not say it: of others, or of an earlier version.
func nodesMaxOf(secret *corev1.Secret) int {
	if most, err := strconv.Atoi(string(secret.Data[nodesMaxKey])); err == nil && most > 0 {
		return min(most, NodesMax)
	}
	return NodesDefault
}
