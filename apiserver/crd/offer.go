package crd

import (
	"context"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// offer is what discovery shows of one state of the definitions.
type offer struct {
	state []*storage.Cached
	kinds []*resource.Any
}

// Kinds describes all versions that are served now, in the order of the definitions'
// names. The result is the same slice as long as no definition changes.
func (c *Catalog) Kinds(ctx context.Context) ([]*resource.Any, error) {
	page, err := c.table.List(ctx, storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(page.Items, c.offer.state) {
		return c.offer.kinds, nil
	}
	c.offer = offer{state: page.Items}
	for _, item := range page.Items {
		crd := item.Object().(*apiextensionsv1.CustomResourceDefinition)
		if isServed(crd) && crd.Status.AcceptedNames.Plural != "" {
			c.offer.kinds = append(c.offer.kinds, c.offered(crd)...)
		}
	}
	return c.offer.kinds, nil
}

// offered describes the served versions of a definition, for discovery alone.
func (c *Catalog) offered(crd *apiextensionsv1.CustomResourceDefinition) []*resource.Any {
	d := &definition{catalog: c, crd: crd}
	var kinds []*resource.Any
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Served {
			kinds = append(kinds, newVersion(d, v).kind())
		}
	}
	return kinds
}

func revisionOf(crd *apiextensionsv1.CustomResourceDefinition) uint64 {
	revision, _ := strconv.ParseUint(crd.ResourceVersion, 10, 64) // the store made it
	return revision
}
