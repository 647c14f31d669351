package statefulset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// hashLabel carries the hash of a revision's data.
const hashLabel = "controller.kubernetes.io/hash"

// revised is what becomes of the revisions before anything else is done.
type revised struct {
	// current is what pods were created from before the rollout, update what it leads to.
	current, update *appsv1.ControllerRevision
	// create says that update does not exist yet, raise that it gets a new number: it is rolled back to.
	create, raise bool
}

// revise finds the revision of the set's template among those that it has, oldest first.
func revise(set *appsv1.StatefulSet, history []*appsv1.ControllerRevision) (revised, error) {
	proposed, err := newRevision(set, revisions.Next(history))
	if err != nil {
		return revised{}, err
	}
	r := revised{update: proposed, create: true}
	for _, revision := range slices.Backward(history) { // the newest of the same bytes
		if bytes.Equal(revision.Data.Raw, proposed.Data.Raw) {
			r = revised{update: revision}
			break
		}
	}
	if newest := len(history) - 1; r.create && newest >= 0 && sameTemplate(set, history[newest]) {
		r = revised{update: history[newest]}
	}
	if !r.create && r.update != history[len(history)-1] { // rolled back to
		r.update, r.raise = r.update.DeepCopy(), true
		r.update.Revision = proposed.Revision
	}
	r.current = r.update
	for _, revision := range history {
		if revision.Name == set.Status.CurrentRevision && revision.Name != r.update.Name {
			r.current = revision
		}
	}
	return r, nil
}

// sameTemplate reports whether a revision holds the set's template in other bytes, as another version of Kubernetes may
// have written it.
func sameTemplate(set *appsv1.StatefulSet, revision *appsv1.ControllerRevision) bool {
	template, err := templateOf(set, revision)
	return err == nil && apiequality.Semantic.DeepEqual(*template, set.Spec.Template)
}

// templateOf is the set's template as a revision has it.
func templateOf(set *appsv1.StatefulSet, revision *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	now, err := json.Marshal(&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: set.Spec.Template}})
	if err != nil {
		return nil, err
	}
	then, err := strategicpatch.StrategicMergePatch(now, revision.Data.Raw, appsv1.StatefulSet{})
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w", revision.Name, err)
	}
	var restored appsv1.StatefulSet
	if err := json.Unmarshal(then, &restored); err != nil {
		return nil, fmt.Errorf("revision %s: %w", revision.Name, err)
	}
	return &restored.Spec.Template, nil
}

// newRevision is the revision of the set's present template.
func newRevision(set *appsv1.StatefulSet, number int64) (*appsv1.ControllerRevision, error) {
	data, err := revisions.Data(&set.Spec.Template)
	if err != nil {
		return nil, err
	}
	return revisionOfData(set, data, number), nil
}

// revisionOfData is named after the data and the set's collisions.
func revisionOfData(set *appsv1.StatefulSet, data []byte, number int64) *appsv1.ControllerRevision {
	hash := revisions.DataHash(data, new(ptr.Deref(set.Status.CollisionCount, 0)))
	return revisions.New(revisions.Of{
		Owner: set, Kind: kind, Labels: set.Spec.Template.Labels, HashLabel: hashLabel, Hash: hash,
		Name: revisions.Name(set.Name, hash), Data: data, Number: number,
	})
}

// expendable are the oldest revisions beyond the set's limit, of those that neither a pod nor the rollout uses.
func expendable(set *appsv1.StatefulSet, r revised, history []*appsv1.ControllerRevision, pods []*corev1.Pod) []*appsv1.ControllerRevision {
	used := map[string]bool{r.current.Name: true, r.update.Name: true}
	for _, pod := range pods {
		used[revisionOf(pod)] = true
	}
	var old []*appsv1.ControllerRevision
	for _, revision := range history {
		if !used[revision.Name] {
			old = append(old, revision)
		}
	}
	limit := int(ptr.Deref(set.Spec.RevisionHistoryLimit, historyLimit))
	if limit < 0 {
		return nil
	}
	return old[:max(0, len(old)-limit)]
}

// historyLimit is how many unused revisions are kept if the set does not say.
const historyLimit = 10
