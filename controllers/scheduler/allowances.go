package scheduler

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	policylisters "k8s.io/client-go/listers/policy/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// budget is what a PodDisruptionBudget allows right now.
type budget struct {
	namespace, name string
	selector        labels.Selector
	allowed         int32
	granted         map[string]metav1.Time // evictions that are paid for, by the pod's name
}

// allowances are the budgets of a lister, by namespace and name.
func allowances(lister policylisters.PodDisruptionBudgetLister) []budget {
	list, err := lister.List(labels.Everything())
	if err != nil {
		return nil // a cache cannot fail to list everything
	}
	var budgets []budget
	for _, b := range list {
		if selector := plugin.ParseSelector(b.Spec.Selector); !selector.Empty() {
			budgets = append(budgets, budget{b.Namespace, b.Name, selector, b.Status.DisruptionsAllowed, b.Status.DisruptedPods})
		}
	}
	slices.SortFunc(budgets, func(a, b budget) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return budgets
}

// splitByBudget separates the pods whose eviction a budget does not allow, counting down as pods are taken. As upstream, a pod
// counts against its budgets up to the first that it violates. A pod whose eviction the API has granted already costs no more; one
// without labels is of no budget.
func splitByBudget(pods []*plugin.Pod, budgets []budget) (protected, free []*plugin.Pod) {
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

func violates(p *plugin.Pod, left []budget) bool {
	for i := range left {
		if !left[i].covers(p) {
			continue
		}
		if left[i].allowed--; left[i].allowed < 0 {
			return true
		}
	}
	return false
}

func (b *budget) covers(p *plugin.Pod) bool {
	if b.namespace != p.Namespace || len(p.Labels) == 0 || !b.selector.Matches(labels.Set(p.Labels)) {
		return false
	}
	_, paid := b.granted[p.Name]
	return !paid
}
