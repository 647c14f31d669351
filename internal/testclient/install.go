package testclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// establishLimit is how long a CRD may take until its kind is served.
const establishLimit = 10 * time.Second

var errNames = errors.New("another CRD or kind has its names: is it listed twice, under two names?")

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Listed are the objects that a Config lists; among webhooks are those that stand beside them.
type Listed struct {
	crds, webhooks []*unstructured.Unstructured
}

// Read reads the files and folders that a Config lists. Services beside webhook configurations are passed over: the program under test
// takes the place of those that are named there.
func Read(crds, webhooks []string) (Listed, error) {
	definitions, err := readAll("CRDs", crds)
	if err != nil {
		return Listed{}, err
	}
	all, err := readAll("Webhooks", webhooks)
	if err != nil {
		return Listed{}, err
	}
	listed := Listed{crds: definitions, webhooks: slices.DeleteFunc(all, isService)}
	if len(webhooks) > 0 && !listed.HasWebhooks() {
		return Listed{}, fmt.Errorf("Config.Webhooks: there is no webhook configuration in %q: other objects are for Apply", webhooks)
	}
	return listed, nil
}

func isService(object *unstructured.Unstructured) bool {
	return object.GetAPIVersion() == "v1" && object.GetKind() == "Service"
}

// HasWebhooks reports whether there are any that somebody has to serve.
func (l Listed) HasWebhooks() bool {
	return slices.ContainsFunc(l.webhooks, func(object *unstructured.Unstructured) bool {
		return strings.HasSuffix(object.GetKind(), "WebhookConfiguration")
	})
}

// Install makes what a Config lists, and waits until its kinds are served. Webhooks are led to hooks, nil if the Config has none.
func (c *Client) Install(ctx context.Context, listed Listed, hooks *WebhookServer) error {
	if err := c.installAll(ctx, "CRDs", listed.crds, hooks); err != nil {
		return err
	}
	if err := c.installAll(ctx, "Webhooks", listed.webhooks, hooks); err != nil {
		return err
	}
	for _, crd := range listed.crds {
		if crd.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := c.awaitEstablished(ctx, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) installAll(ctx context.Context, field string, objects []*unstructured.Unstructured, hooks *WebhookServer) error {
	for _, object := range objects {
		if hooks != nil {
			hooks.lead(object)
		}
		if err := c.apply(ctx, object); err != nil {
			return fmt.Errorf("Config.%s: %s %s: %w", field, object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func readAll(field string, paths []string) (all []*unstructured.Unstructured, err error) {
	for _, path := range paths {
		objects, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("Config.%s: %w", field, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (c *Client) awaitEstablished(ctx context.Context, name string) error {
	client, err := c.definitions()
	if err != nil {
		return err
	}
	how := ""
	err = Await(ctx, establishLimit, func() (is bool, err error) {
		crd, err := client.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			is, how = hasCondition(crd, "Established")
		}
		if fit, why := hasCondition(crd, "NamesAccepted"); err == nil && !fit && strings.Contains(why, " is False") {
			how, err = why, errNames // it does not become so by waiting
		}
		return is, err
	})
	if err != nil {
		return fmt.Errorf("the CRD %s is not established: %w: %s", name, err, how)
	}
	return nil
}
