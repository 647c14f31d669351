package tokens

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	// waitingUses bounds how many uses wait to be written down. One that finds no place is noted by the token's next request.
	waitingUses = 64
	// writer is who the log says wrote the label.
	writer = "system:apiserver"
	// writeTimeout ends a write while there is no majority.
	writeTimeout = 10 * time.Second
)

// use is when the token of a Secret was used.
type use struct {
	namespace, name string
	uid             types.UID
	at              time.Time
}

// note has the use of a Secret's token written down, once a day. It never waits: a request must not depend on a write. A
// label of tomorrow is another server's, whose clock is ahead.
func (a *Authenticator) note(secret *corev1.Secret, now time.Time) {
	if isNoted(secret, now) {
		return
	}
	select {
	case a.used <- use{secret.Namespace, secret.Name, secret.UID, now}:
	default:
	}
}

func isNoted(secret *corev1.Secret, now time.Time) bool {
	day := secret.Labels[lastUsedLabel]
	return day == now.UTC().Format(dateFormat) || day == now.UTC().AddDate(0, 0, 1).Format(dateFormat)
}

// Run writes down when the tokens in Secrets are used, until ctx ends. Without it they are good all the same.
func (a *Authenticator) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-a.used:
			a.write(storage.WithOrigin(ctx, storage.Origin{User: writer, FieldManager: writer}), u)
		}
	}
}

// write labels the Secret, if it is still the same. What fails is tried again by the token's next request.
func (a *Authenticator) write(ctx context.Context, u use) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, _ = a.objects.Table(secretsResource).Write(ctx, u.namespace, u.name, func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil || v.Current.Object().GetUID() != u.uid || isNoted(v.Current.Object().(*corev1.Secret), u.at) {
			return nil, nil // it has gone, or another server was faster
		}
		next := v.Current.Copy().(*corev1.Secret)
		metav1.SetMetaDataLabel(&next.ObjectMeta, lastUsedLabel, u.at.UTC().Format(dateFormat))
		return &storage.Change{Object: next}, nil
	})
}
