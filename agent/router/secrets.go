package router

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/router/table"
)

// secretsMax is how many Secrets are followed at once; those of younger Ingresses beyond it are not.
const secretsMax = 1000

// secrets follows the Secrets with certificates, each by a watch of its own: a node may read no others.
type secrets struct {
	client  kubernetes.Interface
	changed func()
	log     *slog.Logger
	all     sync.WaitGroup

	mu       sync.Mutex
	followed map[types.NamespacedName]*followed
}

type followed struct {
	cancel   context.CancelFunc
	informer cache.SharedIndexInformer
	// version is that of the Secret from which certificate or err was made.
	version     string
	certificate *tls.Certificate
	err         error
}

func newSecrets(client kubernetes.Interface, changed func(), log *slog.Logger) *secrets {
	return &secrets{client: client, changed: changed, log: log, followed: map[types.NamespacedName]*followed{}}
}

// want follows these Secrets and no others, until ctx ends.
func (s *secrets) want(ctx context.Context, names []types.NamespacedName) {
	if len(names) > secretsMax {
		s.log.Warn("too many Ingresses with certificates", "secrets", len(names), "limit", secretsMax)
		names = names[:secretsMax]
	}
	wanted := map[types.NamespacedName]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range s.followed {
		if !wanted[name] {
			f.cancel()
			delete(s.followed, name)
		}
	}
	for name := range wanted {
		if s.followed[name] == nil {
			s.followed[name] = s.follow(ctx, name)
		}
	}
}

func (s *secrets) follow(ctx context.Context, name types.NamespacedName) *followed {
	ctx, cancel := context.WithCancel(ctx)
	informer := coreinformers.NewFilteredSecretInformer(s.client, name.Namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it has not stopped
		AddFunc: func(any) { s.changed() }, UpdateFunc: func(any, any) { s.changed() }, DeleteFunc: func(any) { s.changed() },
	})
	s.all.Go(func() { informer.RunWithContext(ctx) })
	return &followed{cancel: cancel, informer: informer}
}

// stop ends all watches.
func (s *secrets) stop() {
	s.want(context.Background(), nil)
	s.all.Wait()
}

var errNoSecret = errors.New("it does not exist, or is not known yet")

// certificate is that of a Secret which is followed. It is the same one as long as the Secret is.
func (s *secrets) certificate(namespace, name string) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[types.NamespacedName{Namespace: namespace, Name: name}]
	if f == nil {
		return nil, errNoSecret
	}
	object, ok, _ := f.informer.GetStore().GetByKey(namespace + "/" + name)
	secret, isSecret := object.(*corev1.Secret)
	if !ok || !isSecret {
		return nil, errNoSecret
	}
	if f.version != secret.ResourceVersion || f.version == "" {
		f.version = secret.ResourceVersion
		f.certificate, f.err = table.CertificateOf(secret)
	}
	return f.certificate, f.err
}
