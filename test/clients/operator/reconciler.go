package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// registryNamespace holds an entry for each Site, which only the finalizer removes.
	registryNamespace = "registry"
	finalizer         = group + "/registry"
	owner             = "sites"
	conditionReady    = "Ready"
)

type reconciler struct {
	client.Client
	events events.EventRecorder
}

// Reconcile makes what a Site wants: an entry in the registry, a ConfigMap by
// server-side apply, a Deployment by read and update, and its status.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil {
		return ctrl.Result{}, r.farewell(ctx, site)
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		if err := r.Update(ctx, site); err != nil {
			return ctrl.Result{}, err
		}
		r.events.Eventf(site, nil, corev1.EventTypeNormal, "Adopted", "Adopt", "looked after from now on")
	}
	for _, step := range []func(context.Context, *Site) error{r.register, r.publish, r.serve, r.report} {
		if err := step(ctx, site); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// farewell removes what no owner reference reaches.
func (r *reconciler) farewell(ctx context.Context, site *Site) error {
	entry := &corev1.ConfigMap{ObjectMeta: entryOf(site)}
	if err := r.Delete(ctx, entry); client.IgnoreNotFound(err) != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(site, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, site))
}

func entryOf(site *Site) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: registryNamespace, Name: site.Namespace + "." + site.Name}
}

func (r *reconciler) register(ctx context.Context, site *Site) error {
	entry := &corev1.ConfigMap{ObjectMeta: entryOf(site)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, entry, func() error {
		entry.Data = map[string]string{"replicas": fmt.Sprint(site.Spec.Replicas)}
		return nil
	})
	return err
}

func (r *reconciler) publish(ctx context.Context, site *Site) error {
	data := map[string]string{"text": site.Spec.Text}
	if site.Spec.Theme != "" {
		theme := &corev1.Secret{}
		if err := r.Get(ctx, types.NamespacedName{Namespace: site.Namespace, Name: site.Spec.Theme}, theme); err != nil {
			return client.IgnoreNotFound(err) // its creation comes as an event
		}
		data["theme"] = string(theme.Data["color"])
	}
	text := corev1apply.ConfigMap(site.Name, site.Namespace).WithData(data).WithOwnerReferences(metav1apply.OwnerReference().
		WithAPIVersion(group + "/v1").WithKind("Site").WithName(site.Name).WithUID(site.UID).
		WithController(true).WithBlockOwnerDeletion(true))
	return r.Apply(ctx, text, client.FieldOwner(owner), client.ForceOwnership)
}

func (r *reconciler) serve(ctx context.Context, site *Site) error {
	labels := map[string]string{"site": site.Name}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		deployment.Spec.Replicas = &site.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "example.com/web:v1"}}
		}
		return controllerutil.SetControllerReference(site, deployment, r.Scheme())
	})
	return err
}

// report patches the status if it changed.
func (r *reconciler) report(ctx context.Context, site *Site) error {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(site), deployment); err != nil {
		return client.IgnoreNotFound(err) // not in the cache yet: its event follows
	}
	before := site.DeepCopyObject().(*Site)
	site.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	site.Status.ObservedGeneration = site.Generation
	ready := metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: "Waiting", ObservedGeneration: site.Generation}
	if deployment.Status.ObservedGeneration >= deployment.Generation && deployment.Status.ReadyReplicas == site.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Serving"
	}
	meta.SetStatusCondition(&site.Status.Conditions, ready)
	patch := client.MergeFrom(before)
	if data, err := patch.Data(site); err != nil || string(data) == "{}" {
		return err
	}
	return r.Status().Patch(ctx, site, patch)
}

// sitesOfTheme names the Sites that serve a Secret.
func (r *reconciler) sitesOfTheme(ctx context.Context, secret client.Object) []reconcile.Request {
	var sites SiteList
	if err := r.List(ctx, &sites, client.InNamespace(secret.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, site := range sites.Items {
		if site.Spec.Theme == secret.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&site)})
		}
	}
	return requests
}
