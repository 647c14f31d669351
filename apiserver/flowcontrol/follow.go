package flowcontrol

import (
	"maps"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Reads are the kinds that Follow needs of its factory.
func Reads() []apischema.GroupVersionResource {
	return []apischema.GroupVersionResource{
		flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas"),
		flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations"),
	}
}

// Follow keeps the plan as the objects are, from when the informers run.
func (f *Fairness) Follow(factory informers.SharedInformerFactory) error {
	objects := factory.Flowcontrol().V1()
	if err := follow(f, objects.FlowSchemas().Informer(), f.schemas); err != nil {
		return err
	}
	return follow(f, objects.PriorityLevelConfigurations().Informer(), f.levels)
}

type named interface{ GetName() string }

func follow[T named](f *Fairness, informer cache.SharedIndexInformer, known map[string]T) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { set(f, known, obj.(T)) },
		UpdateFunc: func(_, obj any) { set(f, known, obj.(T)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			f.change(func() { delete(known, obj.(T).GetName()) })
		},
	})
	return err
}

func set[T named](f *Fairness, known map[string]T, obj T) {
	f.change(func() { known[obj.GetName()] = obj })
}

// change makes the plan anew.
func (f *Fairness) change(edit func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit()
	schemas, levels := slices.Collect(maps.Values(f.schemas)), slices.Collect(maps.Values(f.levels))
	f.plan.Store(newPlan(f.plan.Load(), schemas, levels))
}
