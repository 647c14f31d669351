package localvolume

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// theObjects is the only key of the loop that makes the class and its driver.
var theObjects = reconcile.Key{Name: "class and driver"}

const isDefaultClass = "storageclass.kubernetes.io/is-default-class"

// ensureObjects makes what is missing. What is there may have been changed by an administrator, and stays.
func (c *controller) ensureObjects(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	classes, err := c.classes.List("", labels.Everything())
	if err != nil || !c.config.Class && !slices.ContainsFunc(classes, isOwnClass) {
		return 0, err
	}
	api := c.env.Client.StorageV1()
	if _, err := api.CSIDrivers().Get(ctx, localvolume.Driver, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		_, err = api.CSIDrivers().Create(ctx, driver(), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return 0, err
		}
	} else if err != nil {
		return 0, err
	}
	if !c.config.Class || found(c.classes, localvolume.Class) != nil {
		return 0, nil
	}
	_, err = api.StorageClasses().Create(ctx, class(classes), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return 0, nil
	}
	return 0, err
}

func driver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: localvolume.Driver}, Spec: storagev1.CSIDriverSpec{
		AttachRequired: new(false), PodInfoOnMount: new(false), StorageCapacity: new(true), FSGroupPolicy: new(storagev1.FileFSGroupPolicy),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
	}}
}

// class is the default, unless there is one.
func class(others []*storagev1.StorageClass) *storagev1.StorageClass {
	c := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: localvolume.Class}, Provisioner: localvolume.Driver, AllowVolumeExpansion: new(true),
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	if !slices.ContainsFunc(others, func(o *storagev1.StorageClass) bool { return o.Annotations[isDefaultClass] == "true" }) {
		c.Annotations = map[string]string{isDefaultClass: "true"}
	}
	return c
}
