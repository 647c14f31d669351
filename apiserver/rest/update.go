package rest

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/mergekeys"
	"github.com/setpoint-io/setpoint/apiserver/rest/stack"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/cpushare"
)

const optimisticLockMessage = "the object has been modified; please apply your changes to the latest version and try again"

// longBytes of an object take milliseconds to copy, to patch and to judge: server-side apply takes half a second for 300 KB.
const longBytes = 32 << 10

// update is one call of Update, decided as often as the world moves.
type update struct {
	*Store
	ctx              context.Context
	name             string
	info             rest.UpdatedObjectInfo
	validateCreate   rest.ValidateObjectFunc
	validateUpdate   rest.ValidateObjectUpdateFunc
	forceAllowCreate bool
	created          bool
}

// Update implements rest.Updater: PUT, and every form of PATCH.
func (s *Store) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, forceAllowCreate bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	stack.Reserve()
	ctx = withFieldManager(ctx, options.FieldManager)
	u := &update{Store: s, ctx: ctx, name: name, info: info, validateCreate: validateCreate,
		validateUpdate: validateUpdate, forceAllowCreate: forceAllowCreate}
	obj, err := s.write(ctx, name, options.DryRun, u.decide)
	if err != nil {
		return nil, false, err
	}
	return obj, u.created, nil
}

func (u *update) decide(v *storage.View) (*storage.Change, error) {
	u.created = v.Current == nil
	if u.created {
		return u.decideCreate(v)
	}
	if v.Bytes() >= longBytes {
		defer cpushare.Compute(u.ctx)()
	}
	old := v.Current.Copy()
	if err := u.checkPreconditions(old); err != nil {
		return nil, err
	}
	// The handlers may change what they are handed, so old stays ours.
	obj, err := u.updated(old.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	return u.decideUpdate(v, obj, old)
}

// updated is what the client wants to become of old. What upstream's patching
// refuses without saying whose fault it is, is the patch's.
func (u *update) updated(old runtime.Object) (resource.Object, error) {
	if err := mergekeys.Affordable(u.ctx, old); err != nil {
		return nil, err
	}
	updated, err := u.info.UpdatedObject(u.ctx, old)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return asObject(updated)
	case errors.As(err, &status), u.ctx.Err() != nil:
		return nil, err
	default:
		return nil, apierrors.NewBadRequest(err.Error())
	}
}

func (u *update) decideCreate(v *storage.View) (*storage.Change, error) {
	if !u.rules.AllowCreateOnUpdate(u.ctx) && !u.forceAllowCreate {
		return nil, apierrors.NewNotFound(u.kind.GroupResource(), u.name)
	}
	obj, err := u.updated(u.kind.New())
	if err != nil {
		return nil, err
	}
	if rv := obj.GetResourceVersion(); rv != "" && rv != "0" {
		return nil, apierrors.NewConflict(u.kind.GroupResource(), u.name, errors.New("the object does not exist at any resourceVersion: leave resourceVersion empty to create it"))
	}
	if err := u.prepareCreate(u.ctx, obj, u.validateCreate); err != nil {
		return nil, err
	}
	return u.creation(u.ctx, v, obj)
}

func (u *update) checkPreconditions(old resource.Object) error {
	p := u.info.Preconditions()
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != old.GetUID() {
		return u.conflict(fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, old.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
		return u.conflict(fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, old.GetResourceVersion()))
	}
	return nil
}

func (u *update) conflict(message string) error {
	return apierrors.NewConflict(u.kind.GroupResource(), u.name, errors.New(message))
}

func (u *update) decideUpdate(v *storage.View, obj, old resource.Object) (*storage.Change, error) {
	if err := u.checkVersion(obj, old); err != nil {
		return nil, err
	}
	if err := rest.BeforeUpdate(u.rules, u.ctx, obj, old); err != nil {
		return nil, err
	}
	if u.validateUpdate != nil {
		if err := u.validateUpdate(u.ctx, obj.DeepCopyObject(), old.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if finished(u.kind, obj, old) {
		return u.deletion(v, obj) // the client is shown what it made of it
	}
	if apiequality.Semantic.DeepEqual(obj, old) && !v.Outdated() {
		return nil, nil
	}
	return u.replacement(v, obj, old)
}

func (u *update) checkVersion(obj, old resource.Object) error {
	switch obj.GetResourceVersion() {
	case "", "0":
		if !u.rules.AllowUnconditionalUpdate(u.ctx) {
			return apierrors.NewInvalid(schema.GroupKind{Group: u.kind.GroupVersionKind.Group, Kind: u.kind.Plural}, u.name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
			})
		}
		obj.SetResourceVersion(old.GetResourceVersion())
		return nil
	case old.GetResourceVersion():
		return nil
	default:
		return u.conflict(optimisticLockMessage)
	}
}

func (u *update) replacement(v *storage.View, obj, old resource.Object) (*storage.Change, error) {
	if u.guard != nil {
		if err := u.guard(v, false); err != nil {
			return nil, err
		}
	}
	change := &storage.Change{Object: obj}
	if u.allocate != nil {
		var err error
		change.Claims, change.Releases, err = u.allocate(v, obj, old)
		if err == nil {
			err = u.shared(u.ctx, v, obj, change.Claims, change.Releases)
		}
		if err != nil {
			return nil, err
		}
	}
	return u.charged(v, change, obj, old)
}

// finished reports whether an update removes the last thing that kept an object
// alive after its deletion was asked for.
func finished(kind *resource.Any, obj, old resource.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	if kind.Finalizing != nil && kind.Finalizing(obj) {
		return false
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
