package rotations

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// What may be ordered.
const (
	Begin  = "begin"
	Status = "status"
	Abort  = "abort"
)

// conflictsMax is how often the states may be changed by others while an order is carried out.
const conflictsMax = 20

var (
	// ErrOrder says that an order is none.
	ErrOrder = errors.New("want an order to begin, to abort or to tell the status")
	errMoved = errors.New("what is stored changed while it was read")
	errBusy  = errors.New("others change the rotations all the time: try again")
)

// Order is one of an administrator.
type Order struct {
	Kind rotation.Kind `json:"kind"`
	// Order is Begin, Status or Abort.
	Order string `json:"order"`
	// KeepOld, with Begin, is how long the old one is trusted after all use the new one; nil: as usual for the kind.
	KeepOld *metav1.Duration `json:"keepOld,omitempty"`
}

// Carry carries out an order, and tells how far the rotation is then.
func (r *Rotations) Carry(ctx context.Context, o Order) (rotation.Progress, error) {
	if err := o.Kind.Validate(); err != nil {
		return rotation.Progress{}, err
	}
	if !r.isBuilt(o.Kind) {
		return rotation.Progress{}, rotation.ErrNotBuilt
	}
	for range conflictsMax {
		progress, err := r.carry(ctx, o)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !errors.Is(err, errMoved) {
			return progress, err
		}
	}
	return rotation.Progress{}, errBusy
}

func (r *Rotations) carry(ctx context.Context, o Order) (rotation.Progress, error) {
	list, err := r.stored(ctx)
	if err != nil {
		return rotation.Progress{}, err
	}
	state, keys, err := r.read(o, list.Data[string(o.Kind)])
	if errors.Is(err, ErrDropped) && r.movedFrom(ctx, list) {
		return rotation.Progress{}, errMoved
	}
	if err != nil {
		return rotation.Progress{}, err
	}
	state = state.Of(r.config.Life())
	state.Kind = o.Kind
	members, changed, stored := r.members(ctx), false, false
	before := state.UnderWay()
	switch o.Order {
	case Status:
	case Abort:
		state, changed, err = state.Abort(r.config.Clock.Now())
	case Begin:
		state, keys, changed, err = r.begin(o, state, keys, members)
	default:
		err = ErrOrder
	}
	if err == nil && changed {
		err = r.store(ctx, list, state, keys)
		stored = err == nil
	}
	step := state.Plan(members, r.config.Clock.Now(), r.waits(ctx, state, members)...)
	progress := rotation.Progress{State: state, Step: step, Changed: changed, WasUnderWay: before}
	if changed {
		progress.Waits = nil // nobody has had the time yet
	}
	if err == nil && o.Kind == rotation.GossipKey && r.config.Nodes != nil && state.UnderWay() {
		progress.Away, err = r.config.Nodes.Away(ctx)
	}
	if o.Kind == rotation.CA && state.Phase == rotation.Use {
		progress.Former = rotation.Former(members)
	}
	if err != nil && stored {
		r.config.Logger.Warn("nodes that are away cannot be told", "kind", o.Kind, "err", err)
		err = nil // the order is carried out
	}
	return progress, err
}

// read is the state that is stored. What servers of this CA have not sealed, as in a backup of another cluster, keeps no rotation from
// being begun. A text that cannot be read for another reason does: it may be of a later release.
func (r *Rotations) read(o Order, text string) (rotation.State, rotation.Keys, error) {
	if text == "" {
		return rotation.State{}, nil, nil
	}
	state, keys, err := r.open(o.Kind, text)
	if o.Order == Begin && (errors.Is(err, trust.ErrLocked) || errors.Is(err, ErrDropped)) {
		return rotation.State{}, nil, nil
	}
	return state, keys, err
}

// movedFrom reports whether other things are stored than were read: this server may have dropped a key since, as the new ones say.
func (r *Rotations) movedFrom(ctx context.Context, list *corev1.ConfigMap) bool {
	now, err := r.stored(ctx)
	return err == nil && now.ResourceVersion != list.ResourceVersion
}

// begin makes a new key, unless a rotation is under way.
func (r *Rotations) begin(
	o Order, state rotation.State, keys rotation.Keys, members []rotation.Member,
) (rotation.State, rotation.Keys, bool, error) {
	mechanism, from, to := r.config.Mechanisms[o.Kind], "", ""
	if !state.UnderWay() {
		if err := rotation.Follows(o.Kind, members); err != nil {
			return state, nil, false, err
		}
		key, fingerprint, err := mechanism.New()
		if err != nil {
			return state, nil, false, err
		}
		if from, _ = mechanism.Held(); state.Phase == rotation.Done {
			from = state.To // also if this server has not followed yet
		}
		to, keys = fingerprint, keysOf(mechanism, from, keys[from], fingerprint, key)
	}
	next, changed, err := state.Begin(o.Kind, from, to, durationOf(o.KeepOld), r.config.Clock.Now())
	return next, keys, changed, err
}

// keysOf are the new key and the old one, which no server may have any more when a backup of this moment is restored.
func keysOf(mechanism Mechanism, from string, old []byte, to string, fresh []byte) rotation.Keys {
	if old == nil {
		old = mechanism.Key(from)
	}
	keys := rotation.Keys{to: fresh}
	if old != nil {
		keys[from] = old
	}
	return keys
}

// stored is the ConfigMap as it is now in the cluster; it has no resource version if there is none yet.
func (r *Rotations) stored(ctx context.Context) (*corev1.ConfigMap, error) {
	list, err := r.config.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rotation.ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rotation.ConfigMapName, Namespace: metav1.NamespaceSystem}}, nil
	}
	return list, err
}

func (r *Rotations) store(ctx context.Context, list *corev1.ConfigMap, state rotation.State, keys rotation.Keys) error {
	text, err := state.Text(r.config.Locker, keys)
	if err != nil {
		return err
	}
	if list.Data == nil {
		list.Data = map[string]string{}
	}
	list.Data[string(state.Kind)] = text
	lists := r.config.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if list.ResourceVersion == "" {
		_, err = lists.Create(ctx, list, metav1.CreateOptions{})
	} else {
		_, err = lists.Update(ctx, list, metav1.UpdateOptions{})
	}
	return err
}

func durationOf(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}

func byName(a, b trust.Server) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Endpoint, b.Endpoint))
}
