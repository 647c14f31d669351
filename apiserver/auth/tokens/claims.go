package tokens

import (
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// claims are what a token says. The names are upstream's, which other programs read.
type claims struct {
	jwt.Claims
	Kubernetes *kubernetesClaims `json:"kubernetes.io,omitempty"`
	legacyClaims
}

type kubernetesClaims struct {
	Namespace string           `json:"namespace,omitempty"`
	Account   reference        `json:"serviceaccount"`
	Pod       *reference       `json:"pod,omitempty"`
	Secret    *reference       `json:"secret,omitempty"`
	Node      *reference       `json:"node,omitempty"`
	WarnAfter *jwt.NumericDate `json:"warnafter,omitempty"`
}

type reference struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// legacyClaims are those of tokens in secrets, which never expire.
type legacyClaims struct {
	Account    string `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	AccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
	Secret     string `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	Namespace  string `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
}

// legacyIssuer is who legacy tokens say has made them, whatever the cluster's issuer is called.
const legacyIssuer = "kubernetes/serviceaccount"

// Binding is what a token is bound to besides its account: at most one of a pod
// (with its node, if it has one), a secret and a node.
type Binding struct {
	Pod    *corev1.Pod
	Secret *corev1.Secret
	Node   *corev1.Node
}

// newClaims says that account may speak to audiences for life. warnAfter, unless
// it is zero, is when a program that still uses the token is late.
func newClaims(account *corev1.ServiceAccount, bound Binding, audiences []string, life, warnAfter time.Duration, now time.Time) *claims {
	c := &claims{
		Claims: jwt.Claims{
			Subject:  serviceaccount.MakeUsername(account.Namespace, account.Name),
			Audience: audiences,
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(life)),
			ID: uuid.NewString(),
		},
		Kubernetes: &kubernetesClaims{Namespace: account.Namespace, Account: *referTo(account)},
	}
	k := c.Kubernetes
	if bound.Pod != nil {
		k.Pod = referTo(bound.Pod)
	}
	if bound.Secret != nil {
		k.Secret = referTo(bound.Secret)
	}
	if bound.Node != nil {
		k.Node = referTo(bound.Node)
	}
	if warnAfter != 0 {
		k.WarnAfter = jwt.NewNumericDate(now.Add(warnAfter))
	}
	return c
}

func referTo(o metav1.Object) *reference {
	return &reference{Name: o.GetName(), UID: string(o.GetUID())}
}
