package setpoint

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/kinds/scheduling"
	"github.com/setpoint-io/setpoint/apiserver/rest/addresses"
)

// clusterObjectsInterval is how often the leader looks whether the objects that every
// cluster has are still there, and as they should be.
const clusterObjectsInterval = time.Minute

// keepClusterObjects makes what every cluster has beside namespaces and the API's own
// Service: the system's priority classes, upstream's flow schemas with their levels,
// the range of Services' addresses, and whom aggregated servers believe. It brings back what somebody deleted, until ctx ends.
func (l *loops) keepClusterObjects(ctx context.Context, client kubernetes.Interface) error {
	ensure := func(ctx context.Context) error {
		return errors.Join(ensureClusterObjects(ctx, client), l.server.ensureAuthenticationConfig(ctx, client))
	}
	for l.until(ctx, "cluster objects", ensure) {
		if !sleep(ctx, clusterObjectsInterval) {
			break
		}
	}
	return nil
}

// ensureClusterObjects writes nothing if everything is as it should be.
func ensureClusterObjects(ctx context.Context, client kubernetes.Interface) error {
	fromCache := metav1.ListOptions{ResourceVersion: "0"}
	classes, err := client.SchedulingV1().PriorityClasses().List(ctx, fromCache)
	if err != nil {
		return err
	}
	if err := ensureAll(ctx, client.SchedulingV1().PriorityClasses(), pointers(classes.Items), scheduling.SystemPriorityClasses(), nil); err != nil {
		return err
	}
	levels, err := client.FlowcontrolV1().PriorityLevelConfigurations().List(ctx, fromCache)
	if err != nil {
		return err
	}
	wantedLevels := slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations)
	if err := ensureAll(ctx, client.FlowcontrolV1().PriorityLevelConfigurations(), pointers(levels.Items), wantedLevels, revisedLevel); err != nil {
		return err
	}
	schemas, err := client.FlowcontrolV1().FlowSchemas().List(ctx, fromCache)
	if err != nil {
		return err
	}
	wantedSchemas := slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas)
	if err := ensureAll(ctx, client.FlowcontrolV1().FlowSchemas(), pointers(schemas.Items), wantedSchemas, revisedSchema); err != nil {
		return err
	}
	return ensureServiceCIDR(ctx, client)
}

// defaultServiceCIDR is upstream's name of the range that Services get addresses from.
const defaultServiceCIDR = "kubernetes"

// ensureServiceCIDR shows the range and that it is in use. The range itself is fixed.
func ensureServiceCIDR(ctx context.Context, client kubernetes.Interface) error {
	ranges := client.NetworkingV1().ServiceCIDRs()
	have, err := ranges.Get(ctx, defaultServiceCIDR, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		have, err = ranges.Create(ctx, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: defaultServiceCIDR},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{addresses.ServiceCIDR.String()}},
		}, metav1.CreateOptions{})
	}
	if err != nil || meta.IsStatusConditionTrue(have.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
		return err
	}
	have = have.DeepCopy()
	meta.SetStatusCondition(&have.Status.Conditions, metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Reason: "NetworkReady", Message: "Kubernetes default Service CIDR is ready",
	})
	_, err = ranges.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

// objectClient is the part of a typed client that makes objects what they should be.
type objectClient[T any] interface {
	Create(ctx context.Context, obj T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, options metav1.UpdateOptions) (T, error)
}

type clusterObject interface {
	metav1.Object
	runtime.Object
}

// ensureAll creates what is missing of wanted. revised returns a stored object as it
// should be, or false if it may stay; a nil function means that all may.
func ensureAll[T clusterObject](ctx context.Context, client objectClient[T], stored, wanted []T, revised func(stored, wanted T) (T, bool)) error {
	byName := map[string]T{}
	for _, obj := range stored {
		byName[obj.GetName()] = obj
	}
	for _, want := range wanted {
		have, found := byName[want.GetName()]
		if !found {
			// The wanted objects are shared by all servers of the process; encoders write to what they encode.
			if err := ensured(client.Create(ctx, want.DeepCopyObject().(T), metav1.CreateOptions{})); err != nil {
				return err
			}
			continue
		}
		if revised == nil {
			continue
		}
		if changed, needed := revised(have, want); needed {
			if _, err := client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// maintained reports whether the cluster keeps the spec of a suggested object: an
// administrator says so by an annotation, else as long as he has changed nothing.
func maintained(obj metav1.Object) bool {
	keep, err := strconv.ParseBool(obj.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey])
	if err != nil {
		return obj.GetGeneration() == 1
	}
	return keep
}

// revisedLevel leaves the shares of the exempt level to the administrator.
func revisedLevel(have, want *flowcontrolv1.PriorityLevelConfiguration) (*flowcontrolv1.PriorityLevelConfiguration, bool) {
	if want.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt || !maintained(have) || apiequality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil, false
	}
	changed := have.DeepCopy()
	want.Spec.DeepCopyInto(&changed.Spec)
	return changed, true
}

func revisedSchema(have, want *flowcontrolv1.FlowSchema) (*flowcontrolv1.FlowSchema, bool) {
	if !maintained(have) || apiequality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil, false
	}
	changed := have.DeepCopy()
	want.Spec.DeepCopyInto(&changed.Spec)
	return changed, true
}

func pointers[T any](items []T) []*T {
	list := make([]*T, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}
