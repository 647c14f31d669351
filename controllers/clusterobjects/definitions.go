package clusterobjects

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// bundledAnnotation is the version of a definition that was made here. Who installs another leaves it behind, and another
	// bundle-version beside it.
	bundledAnnotation = "setpoint.io/bundled"
	// versionAnnotation is the version that a definition has; the authors of the Gateway API put it there.
	versionAnnotation = "gateway.networking.k8s.io/bundle-version"
)

// definitions keeps those that the cluster brings along. They are large, so they are parsed only if one is missing or old.
type definitions struct {
	// all makes them; nil: there are none to keep.
	all    func() ([]*apiextensionsv1.CustomResourceDefinition, error)
	stored reconcile.Cache[*apiextensionsv1.CustomResourceDefinition]
	client apiextensions.Interface
	// versions are by name, once they are known.
	versions map[string]string
}

func (d *definitions) ensure(ctx context.Context) error {
	if d.all == nil || d.complete() {
		return nil
	}
	wanted, err := d.all()
	if err != nil {
		return err
	}
	d.versions = map[string]string{}
	for _, want := range wanted {
		d.versions[want.Name] = want.Annotations[versionAnnotation]
		if err := d.ensureOne(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

// complete tells whether all are there, and none is older than ours.
func (d *definitions) complete() bool {
	for name, v := range d.versions {
		have, err := d.stored.Get(reconcile.Key{Name: name})
		if err != nil || outdated(have, v) {
			return false
		}
	}
	return d.versions != nil
}

func (d *definitions) ensureOne(ctx context.Context, want *apiextensionsv1.CustomResourceDefinition) error {
	client := d.client.ApiextensionsV1().CustomResourceDefinitions()
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, bundledAnnotation, want.Annotations[versionAnnotation])
	have, err := d.stored.Get(reconcile.Key{Name: want.Name})
	switch {
	case apierrors.IsNotFound(err):
		return created(client.Create(ctx, want, metav1.CreateOptions{}))
	case err != nil || !outdated(have, want.Annotations[versionAnnotation]):
		return err
	}
	changed := have.DeepCopy()
	changed.Spec = want.Spec
	for name, value := range want.Annotations {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, name, value)
	}
	_, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// outdated tells whether a definition was made here, is as it was made, and of an older version: one that somebody has installed
// stays, and one of a newer server too.
func outdated(have *apiextensionsv1.CustomResourceDefinition, ours string) bool {
	is := have.Annotations[versionAnnotation]
	if have.Annotations[bundledAnnotation] != is || have.DeletionTimestamp != nil {
		return false
	}
	old, err := version.ParseSemantic(is)
	fresh, wrong := version.ParseSemantic(ours)
	return err == nil && wrong == nil && old.LessThan(fresh)
}
