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

// interval is the pause between two looks at all requests; upstream's.
const interval = time.Hour

var requests = reconcile.KindOf[*certificatesv1.CertificateSigningRequest](
	certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
)

// everything is the only key: each pass looks at all requests.
var everything = reconcile.Key{Name: "all requests"}

// New deletes old CertificateSigningRequests.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "certificatesigningrequest-cleaner-controller",
		Account: "certificate-controller",
		Reads:   []reconcile.Read{requests},
		Run:     run,
	}
}

type controller struct {
	env      *reconcile.Env
	requests reconcile.Cache[*certificatesv1.CertificateSigningRequest]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, requests.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "certificatecleaner",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Filled(c.requests)},
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Env:       env,
	})
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	all, err := c.requests.List("", nil)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, csr := range all {
		if why := overdue(csr, c.env.Now()); why != "" && ctx.Err() == nil {
			c.env.Logger.Info("certificate signing request deleted", "request", csr.Name, "because", why)
			errs = append(errs, c.end(reconcile.WithCause(ctx, csr), csr))
		}
	}
	return interval, errors.Join(errs...)
}

// end deletes a request unless it was changed since it was judged: the next pass judges it again.
func (c *controller) end(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	err := c.env.Client.CertificatesV1().CertificateSigningRequests().Delete(ctx, csr.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &csr.UID, ResourceVersion: &csr.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete certificate signing request %s: %w", csr.Name, err)
}
