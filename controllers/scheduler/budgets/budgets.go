package budgets

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	policylisters "k8s.io/client-go/listers/policy/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// Budget is what a PodDisruptionBudget allows right now.
type Budget struct {
	Namespace, Name string
	Selector        labels.Selector
	Allowed         int32                  // evictions
	Granted         map[string]metav1.Time // those that are paid for, by the pod's name
}

// Of are the budgets of a lister, by namespace and name.
func Of(lister policylisters.PodDisruptionBudgetLister) []Budget {
	list, err := lister.List(labels.Everything())
	if err != nil {
		return nil // a cache cannot fail to list everything
	}
	var budgets []Budget
	for _, b := range list {
		if selector := plugin.ParseSelector(b.Spec.Selector); !selector.Empty() {
			budgets = append(budgets, Budget{b.Namespace, b.Name, selector, b.Status.DisruptionsAllowed, b.Status.DisruptedPods})
		}
	}
	slices.SortFunc(budgets, func(a, b Budget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return budgets
}

// Split separates the pods whose eviction a budget does not allow, counting down as pods are taken. As upstream, a pod
// counts against its budgets up to the first that it violates. A pod whose eviction the API has granted already costs no more; one
// without labels is of no budget.
func Split(pods []*plugin.Pod, budgets []Budget) (protected, free []*plugin.Pod) {
	left := slices.Clone(budgets)
	for _, p := range pods {
		if violates(p, left) {
			protected = append(protected, p)
		} else {
			free = append(free, p)
		}
	}
	return protected, free
}

func violates(p *plugin.Pod, left []Budget) bool {
	for i := range left {
		if !left[i].covers(p) {
			continue
		}
		if left[i].Allowed--; left[i].Allowed < 0 {
			return true
		}
	}
	return false
}

func (b *Budget) covers(p *plugin.Pod) bool {
	if b.Namespace != p.Namespace || len(p.Labels) == 0 || !b.Selector.Matches(labels.Set(p.Labels)) {
		return false
	}
	_, paid := b.Granted[p.Name]
	return !paid
}
