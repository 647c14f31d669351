package jointoken

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

const (
	// MaxLife bounds what may be asked for.
	MaxLife = 365 * 24 * time.Hour
	minLife = time.Minute

	// authorityWait bounds how long Create waits for a cluster that has just started.
	authorityWait  = 5 * time.Second
	authorityPause = 100 * time.Millisecond

	// joinTokenAnnotation of the namespace kube-system names the token of `cluster init`
	// once it is in the store, so that one that was deleted or has expired does not come back.
	joinTokenAnnotation = "setpoint.io/join-token"
	rootCABundle        = "kube-root-ca.crt"
)

var (
	ErrLife        = fmt.Errorf("--ttl must be from %s to %s", minLife, MaxLife)
	ErrID          = errors.New("want a token's id, six small letters and digits: 'setpoint token list' shows them")
	ErrNone        = errors.New("there is no such token: 'setpoint token list' shows those that there are")
	ErrNotYet      = errors.New("the cluster is starting and has not stored its first join token yet")
	ErrNoAuthority = errors.New("the cluster has not published its certificate authority yet: try again in a moment")

	tokenID = regexp.MustCompile(`^[a-z0-9]{6}$`)
)

// Token is one token in the store, for `setpoint token`.
type Token struct {
	ID string `json:"id"`
	// For is whom it lets in: ForAgents or ForServers.
	For string `json:"for"`
	// Token is its text: a secret, there only when it was just made.
	Token string `json:"token,omitempty"`
	// Expires is nil for one without end, which others may make.
	Expires *time.Time `json:"expires,omitempty"`
	// Nodes are how many names of nodes or servers it has taken, of NodesMax that it may take.
	Nodes       int    `json:"nodes"`
	NodesMax    int    `json:"nodesMax"`
	Description string `json:"description,omitempty"`
}

// Wanted is a token that somebody wants: for TTL, from MaxLife down to a minute, and for so many names of nodes, up to NodesMax, or of
// servers, up to ServersMax.
type Wanted struct {
	TTL         time.Duration `json:"ttl"`
	Nodes       int           `json:"nodes"`
	Description string        `json:"description,omitempty"`
}

// Order is of one token, however often it is asked for.
type Order struct {
	Wanted
	token tokens.Token
}

// Create makes a token that lets machines join from now on.
func Create(ctx context.Context, client kubernetes.Interface, wanted Wanted, now time.Time) (*Token, error) {
	return (&Order{Wanted: wanted}).Create(ctx, client, now)
}

// Create makes the token, or finds the one that an earlier call has made whose answer was lost.
func (o *Order) Create(ctx context.Context, client kubernetes.Interface, now time.Time) (*Token, error) {
	if o.TTL < minLife || o.TTL > MaxLife {
		return nil, ErrLife
	}
	if o.Nodes < 1 || o.Nodes > NodesMax {
		return nil, ErrNodes
	}
	pin, err := awaitPin(ctx, client)
	if err != nil {
		return nil, err
	}
	if o.token.Secret == "" {
		if o.token, err = tokens.New(tokens.RoleNode, pin); err != nil {
			return nil, err
		}
	}
	o.token.Pin = pin
	secret, err := o.secret(ctx, client, now)
	if err != nil {
		return nil, err
	}
	made := read(secret)
	made.Token = o.token.Text()
	return &made, nil
}

// secret is the token's, made now or before.
func (o *Order) secret(ctx context.Context, client kubernetes.Interface, now time.Time) (*corev1.Secret, error) {
	secrets, wanted := client.CoreV1().Secrets(metav1.NamespaceSystem), secretOf(o.token, o.Wanted, now)
	secret, err := secrets.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return secret, err
	}
	made, getErr := secrets.Get(ctx, wanted.Name, metav1.GetOptions{})
	if getErr != nil || !tokens.SameSecret(made.Data[bootstrapapi.BootstrapTokenSecretKey], []byte(o.token.Key())) {
		return nil, errors.Join(err, getErr)
	}
	return made, nil
}

// awaitPin gives a cluster that has just started a while to publish its authority.
func awaitPin(ctx context.Context, client kubernetes.Interface) (pin string, err error) {
	_ = wait.PollUntilContextTimeout(ctx, authorityPause, authorityWait, true, func(ctx context.Context) (bool, error) {
		pin, err = clusterPin(ctx, client)
		return !errors.Is(err, ErrNoAuthority), nil
	})
	return pin, err
}

// clusterPin is the hash of the authority, as the cluster publishes it: a kubeconfig may
// lead through a balancer with an authority of its own.
func clusterPin(ctx context.Context, client kubernetes.Interface) (string, error) {
	bundle, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rootCABundle, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", ErrNoAuthority
	}
	if err != nil {
		return "", err
	}
	authority, err := trust.ParseCertificate([]byte(bundle.Data["ca.crt"]))
	if err != nil {
		return "", err
	}
	return trust.Pin(authority), nil
}

func secretOf(token tokens.Token, wanted Wanted, now time.Time) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstrapapi.BootstrapTokenSecretPrefix + token.ID()},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(token.ID()),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(token.Key()),
			bootstrapapi.BootstrapTokenExpirationKey:       []byte(now.Add(wanted.TTL).UTC().Format(time.RFC3339)),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			nodesMaxKey: []byte(strconv.Itoa(wanted.Nodes)),
		},
	}
	if wanted.Description != "" {
		secret.Data[bootstrapapi.BootstrapTokenDescriptionKey] = []byte(wanted.Description)
	}
	return secret
}

// List returns the tokens that let nodes or servers join, without their secrets,
// sorted by id.
func List(ctx context.Context, client kubernetes.Interface) ([]Token, error) {
	secrets, err := client.CoreV1().
		Secrets(metav1.NamespaceSystem).
		List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(bootstrapapi.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, err
	}
	tokens := []Token{}
	for i := range secrets.Items {
		if secret := &secrets.Items[i]; isServers(secret) || string(secret.Data[bootstrapapi.BootstrapTokenUsageAuthentication]) == "true" {
			tokens = append(tokens, read(&secrets.Items[i]))
		}
	}
	slices.SortFunc(tokens, func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return tokens, nil
}

func read(secret *corev1.Secret) Token {
	t := Token{
		ID: string(secret.Data[bootstrapapi.BootstrapTokenIDKey]), For: ForAgents,
		Description: string(secret.Data[bootstrapapi.BootstrapTokenDescriptionKey]),
		Nodes:       len(namesOf(secret)), NodesMax: nodesMaxOf(secret),
	}
	if isServers(secret) {
		t.For = ForServers
	}
	if end, err := time.Parse(time.RFC3339, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey])); err == nil {
		t.Expires = &end
	}
	return t
}

// Delete ends a token at once; it is named by its id or its text.
func Delete(ctx context.Context, client kubernetes.Interface, name string) (id string, err error) {
	id = name
	if token, err := tokens.Parse(name); err == nil {
		id = token.ID()
	}
	if !tokenID.MatchString(id) {
		return "", ErrID // does not repeat it: it may be a secret
	}
	err = client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, bootstrapapi.BootstrapTokenSecretPrefix+id, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return "", ErrNone
	}
	return id, err
}

// Judge asks admits about a token. The one that `cluster init` wrote is not refused before the leader has put it into the
// store: containers of one Compose file start together, and a refusal ends an agent. ErrNotYet then: try again.
func Judge(
	ctx context.Context,
	client kubernetes.Interface,
	first, asked tokens.Token,
	admits func(context.Context, tokens.Token) (bool, error),
) (bool, error) {
	missing := false
	if subtle.ConstantTimeCompare([]byte(asked.Text()), []byte(first.Text())) == 1 {
		// Before the token itself is looked up: it may come in between.
		system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		missing = err != nil || firstMissing(system)
	}
	admitted, err := admits(ctx, asked)
	if err == nil && !admitted && missing {
		return false, ErrNotYet
	}
	return admitted, err
}

func firstMissing(system *corev1.Namespace) bool {
	_, known := system.Annotations[joinTokenAnnotation]
	return !known
}

// EnsureFirst makes the token that `cluster init` wrote good for tokens.Life from
// the first start of the cluster on. Later starts find its annotation and do nothing.
func EnsureFirst(ctx context.Context, client kubernetes.Interface, token tokens.Token, now time.Time) error {
	if token == (tokens.Token{}) {
		return nil
	}
	namespaces := client.CoreV1().Namespaces()
	system, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !firstMissing(system) {
		return nil
	}
	wanted := Wanted{TTL: tokens.Life, Nodes: NodesDefault, Description: "written by 'setpoint cluster init'"}
	secret := secretOf(token, wanted, now)
	_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, joinTokenAnnotation, token.ID())
	_, err = namespaces.Patch(ctx, metav1.NamespaceSystem, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
