package upstream

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

var owners = map[string]func(*play){
	"owners-of-the-whole-cluster":         clusterScoped,
	"owners-many-at-once":                 manyOwners,
	"owner-that-is-not-waited-for":        nonBlocking,
	"owner-that-is-waited-for":            blocking,
	"deleted-twice-beside-a-finalizer":    deletedTwice,
	"owners-custom-and-core-mixed":        mixedOwners,
	"owners-of-a-deleted-definition":      deletedDefinition,
	"owners-beside-a-broken-conversion":   brokenConversion,
	"owner-that-goes-and-one-that-stays":  solidOwner,
	"owners-of-other-namespaces-children": crossNamespace,
}

func (p *play) configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	p.Helper()
	object, err := p.client.CoreV1().ConfigMaps(p.namespace).Create(p.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}, metav1.CreateOptions{})
	p.must(err)
	return object
}

func configMapOwner(object *corev1.ConfigMap) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: object.Name, UID: object.UID}
}

func (p *play) deleteConfigMap(name string, policy metav1.DeletionPropagation) {
	p.Helper()
	p.must(p.client.CoreV1().ConfigMaps(p.namespace).Delete(p.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// seeConfigMaps waits until these are all.
func (p *play) seeConfigMaps(wanted ...string) {
	p.Helper()
	want := strings.Join(wanted, " ")
	p.see("these ConfigMaps: "+want, func(ctx context.Context) (string, bool) {
		list, err := p.client.CoreV1().ConfigMaps(p.namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		if err != nil {
			return err.Error(), false
		}
		var names []string
		for _, object := range list.Items {
			names = append(names, object.Name)
		}
		saw := strings.Join(names, " ")
		return saw, saw == want
	})
}

func clusterScoped(p *play) {
	volumes := p.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Create(p.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/foo"}},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}}, metav1.CreateOptions{})
	p.must(err)
	of := metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolume", Name: volume.Name, UID: volume.UID}
	missing := of
	missing.Name, missing.UID = "missing-name", "missing-uid"
	p.configMap("invalid", metav1.OwnerReference{APIVersion: "unknown.group/v1", Kind: "UnknownType", Name: "invalid-name", UID: "invalid-uid"})
	p.configMap("valid", of)
	p.configMap("missing", missing)
	p.seeConfigMaps("invalid", "valid")
	p.must(volumes.Delete(p.Context(), volume.Name, metav1.DeleteOptions{}))
	p.seeConfigMaps("invalid")
}

// manyOwners: each of thirty owners goes in one of three ways, and takes its own with it, or not.
func manyOwners(p *play) {
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan}
	var orphans []string
	for i := range 30 {
		of := configMapOwner(p.configMap(fmt.Sprintf("owner-%02d", i)))
		for j := range 3 {
			name := fmt.Sprintf("child-%02d-%d", i, j)
			p.configMap(name, of)
			if i%3 == 2 {
				orphans = append(orphans, name)
			}
		}
	}
	for i := range 30 {
		p.deleteConfigMap(fmt.Sprintf("owner-%02d", i), policies[i%3])
	}
	p.seeConfigMaps(orphans...)
}

// heldChild is a dependent that a finalizer of another keeps.
func (p *play) heldChild(name string, block bool) {
	p.Helper()
	of := configMapOwner(p.configMap("owner"))
	of.BlockOwnerDeletion = &block
	p.configMap(name, of)
	_, err := p.client.CoreV1().ConfigMaps(p.namespace).Patch(p.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/held"]}}`), metav1.PatchOptions{})
	p.must(err)
}

func nonBlocking(p *play) {
	p.heldChild("child", false)
	p.deleteConfigMap("owner", metav1.DeletePropagationForeground)
	p.seeConfigMaps("child")
	p.free("child")
	p.seeConfigMaps()
}

func blocking(p *play) {
	p.heldChild("child", true)
	p.deleteConfigMap("owner", metav1.DeletePropagationForeground)
	seen(p, "the child goes, and its owner is there", func(ctx context.Context) (*corev1.ConfigMap, error) {
		return p.client.CoreV1().ConfigMaps(p.namespace).Get(ctx, "child", metav1.GetOptions{})
	}, func(child *corev1.ConfigMap) bool { return child.DeletionTimestamp != nil })
	p.seeConfigMaps("child", "owner")
	p.free("child")
	p.seeConfigMaps()
}

// free takes the finalizers of a ConfigMap.
func (p *play) free(name string) {
	p.Helper()
	_, err := p.client.CoreV1().ConfigMaps(p.namespace).Patch(p.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	p.must(err)
}

// deletedTwice: each time the collector takes its own finalizer away, and leaves the other.
func deletedTwice(p *play) {
	object := p.configMap("object")
	_, err := p.client.CoreV1().ConfigMaps(p.namespace).Patch(p.Context(), object.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/held"]}}`), metav1.PatchOptions{})
	p.must(err)
	for range 2 {
		p.deleteConfigMap("object", metav1.DeletePropagationForeground)
		seen(p, "one finalizer", func(ctx context.Context) (*corev1.ConfigMap, error) {
			return p.client.CoreV1().ConfigMaps(p.namespace).Get(ctx, "object", metav1.GetOptions{})
		}, func(object *corev1.ConfigMap) bool {
			return len(object.Finalizers) == 1 && object.Finalizers[0] == "example.com/held"
		})
	}
	p.free("object")
	p.seeConfigMaps()
}

// solidOwner: who has an owner that stays is not deleted with one that waits, and no longer names it.
func solidOwner(p *play) {
	waiting, solid := configMapOwner(p.configMap("waiting")), configMapOwner(p.configMap("solid"))
	waiting.BlockOwnerDeletion, solid.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	p.configMap("child", waiting, solid)
	p.deleteConfigMap("waiting", metav1.DeletePropagationForeground)
	p.seeConfigMaps("child", "solid")
	child, err := p.client.CoreV1().ConfigMaps(p.namespace).Get(p.Context(), "child", metav1.GetOptions{})
	p.must(err)
	if len(child.OwnerReferences) != 1 || child.OwnerReferences[0].UID != solid.UID {
		p.Errorf("owners %v", child.OwnerReferences)
	}
}

// crossNamespace: an owner of another namespace is none, and those of the owner's own namespace are not led astray by it.
func crossNamespace(p *play) {
	other := p.namespace + "-b"
	_, err := p.client.CoreV1().Namespaces().Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{})
	p.must(err)
	of := configMapOwner(p.configMap("owner"))
	p.configMap("child", of)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign", OwnerReferences: []metav1.OwnerReference{of}}}
	_, err = p.client.CoreV1().ConfigMaps(other).Create(p.Context(), foreign, metav1.CreateOptions{})
	p.must(err)
	// The same owner by a version that does not exist.
	wrong := of
	wrong.APIVersion = "nonexistent/v1"
	p.configMap("misnamed", wrong)
	seen(p, "an event about the foreign child", func(ctx context.Context) (*corev1.EventList, error) {
		return p.client.CoreV1().Events(other).List(ctx, metav1.ListOptions{FieldSelector: "reason=OwnerRefInvalidNamespace"})
	}, func(list *corev1.EventList) bool { return len(list.Items) > 0 })
	p.see("the foreign child goes", func(ctx context.Context) (string, bool) {
		_, err := p.client.CoreV1().ConfigMaps(other).Get(ctx, "foreign", metav1.GetOptions{})
		return fmt.Sprint(err), gone(err)
	})
	p.seeConfigMaps("child", "misnamed", "owner")
	p.deleteConfigMap("owner", metav1.DeletePropagationBackground)
	p.see("the child of its own namespace goes", func(ctx context.Context) (string, bool) {
		_, err := p.client.CoreV1().ConfigMaps(p.namespace).Get(ctx, "child", metav1.GetOptions{})
		return fmt.Sprint(err), gone(err)
	})
}

// definition makes a kind of its own and says how to reach it.
func (p *play) definition() (*extensions.Clientset, *apiextensionsv1.CustomResourceDefinition, dynamic.ResourceInterface) {
	p.Helper()
	client, err := extensions.NewForConfig(p.access)
	p.must(err)
	group := p.namespace + ".example.com"
	version := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1beta1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"}}}
	definition, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(p.Context(), definition, metav1.CreateOptions{})
	p.must(err)
	any, err := dynamic.NewForConfig(p.access)
	p.must(err)
	widgets := any.Resource(schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "widgets"}).Namespace(p.namespace)
	p.see("widgets are served", func(ctx context.Context) (string, bool) {
		_, err := widgets.List(ctx, metav1.ListOptions{})
		return fmt.Sprint(err), err == nil
	})
	return client, definition, widgets
}

func (p *play) widget(widgets dynamic.ResourceInterface, name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	p.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(p.namespace + ".example.com/v1beta1")
	object.SetKind("Widget")
	object.SetName(name)
	object.SetOwnerReferences(owners)
	made, err := widgets.Create(p.Context(), object, metav1.CreateOptions{})
	p.must(err)
	return metav1.OwnerReference{APIVersion: made.GetAPIVersion(), Kind: "Widget", Name: name, UID: made.GetUID()}
}

func (p *play) seeNoWidget(widgets dynamic.ResourceInterface, name string) {
	p.Helper()
	p.see(name+" is gone", func(ctx context.Context) (string, bool) {
		_, err := widgets.Get(ctx, name, metav1.GetOptions{})
		return fmt.Sprint(err), gone(err)
	})
}

// mixedOwners: a custom owner of core, custom and core dependents of each other, and a custom one of a custom one.
func mixedOwners(p *play) {
	_, _, widgets := p.definition()
	top := p.widget(widgets, "top")
	p.configMap("core-dependent", top)
	p.widget(widgets, "custom-dependent", top)
	core := configMapOwner(p.configMap("core"))
	p.widget(widgets, "of-core", core)
	foreground := metav1.DeletePropagationForeground
	p.must(widgets.Delete(p.Context(), "top", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	p.seeNoWidget(widgets, "top")
	p.seeNoWidget(widgets, "custom-dependent")
	p.seeConfigMaps("core")
	p.deleteConfigMap("core", foreground)
	p.seeConfigMaps()
	p.seeNoWidget(widgets, "of-core")
}

// deletedDefinition: with a definition its objects go, and what they own; a second of the same name is collected too. The collector
// has seen the owners by then, as upstream's test has it: it has deleted what the first of them owned.
func deletedDefinition(p *play) {
	for range 2 {
		client, definition, widgets := p.definition()
		p.configMap("dependent", p.widget(widgets, "owner"))
		p.configMap("early", p.widget(widgets, "short"))
		p.must(widgets.Delete(p.Context(), "short", metav1.DeleteOptions{}))
		p.seeConfigMaps("dependent")
		p.must(client.ApiextensionsV1().CustomResourceDefinitions().Delete(p.Context(), definition.Name, metav1.DeleteOptions{}))
		p.seeConfigMaps()
		p.see("the definition is gone", func(ctx context.Context) (string, bool) {
			_, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
			return fmt.Sprint(err), gone(err)
		})
	}
}

// brokenConversion: a kind whose objects cannot be read stops the collector for no other.
func brokenConversion(p *play) {
	client, definition, widgets := p.definition()
	p.widget(widgets, "unreadable")
	definition, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(p.Context(), definition.Name, metav1.GetOptions{})
	p.must(err)
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Name: "nobody", Namespace: p.namespace}},
		ConversionReviewVersions: []string{"v1"}}}
	newest := *definition.Spec.Versions[0].DeepCopy()
	definition.Spec.Versions[0].Storage, newest.Name = false, "v1"
	definition.Spec.Versions = append(definition.Spec.Versions, newest)
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Update(p.Context(), definition, metav1.UpdateOptions{})
	p.must(err)
	p.configMap("child", configMapOwner(p.configMap("owner")))
	p.deleteConfigMap("owner", metav1.DeletePropagationForeground)
	p.seeConfigMaps()
	// Its namespace could not go while they cannot be read.
	p.must(client.ApiextensionsV1().CustomResourceDefinitions().Delete(context.WithoutCancel(p.Context()), definition.Name, metav1.DeleteOptions{}))
}
