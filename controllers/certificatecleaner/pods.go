package certificatecleaner

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// podInterval is the pause between two looks at the requests of pods; upstream's.
	podInterval = 5 * time.Minute
	// podPage is how many are listed at once.
	podPage = 500
)

var podRequests = certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests")

// NewOfPods deletes old PodCertificateRequests.
func NewOfPods() reconcile.Controller {
	return reconcile.Controller{Name: "podcertificaterequest-cleaner-controller", Run: runOfPods}
}

func runOfPods(ctx context.Context, env *reconcile.Env) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name: "podcertificatecleaner",
		Reconcile: func(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
			return podInterval, cleanPods(ctx, env)
		},
		Feeds:   []reconcile.Feed{reconcile.Once(everything)},
		Workers: 1,
		Env:     env,
	})
}

// cleanPods looks at all requests, a page at a time. What fails does not keep the others.
func cleanPods(ctx context.Context, env *reconcile.Env) error {
	var errs []error
	options := metav1.ListOptions{Limit: podPage}
	for {
		page, err := env.Metadata.Resource(podRequests).List(ctx, options)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list certificate requests of pods: %w", err))...)
		}
		for i := range page.Items {
			if request := &page.Items[i]; podOverdue(request, env.Now()) {
				errs = append(errs, endOfPod(reconcile.WithCause(ctx, request), env, request))
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return errors.Join(errs...)
		}
	}
}

func endOfPod(ctx context.Context, env *reconcile.Env, request *metav1.PartialObjectMetadata) error {
	err := env.Client.CertificatesV1().PodCertificateRequests(request.Namespace).Delete(ctx, request.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &request.UID},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete certificate request %s/%s: %w", request.Namespace, request.Name, err)
}
