package profile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
)

// The extension points at which the plugins that exist here act, under upstream's names.
const (
	preEnqueue = "preEnqueue"
	queueSort  = "queueSort"
	preFilter  = "preFilter"
	filter     = "filter"
	postFilter = "postFilter"
	preScore   = "preScore"
	score      = "score"
	reserve    = "reserve"
	preBind    = "preBind"
	bind       = "bind"
	multiPoint = "multiPoint"
)

// inTree is one of upstream's plugins.
type inTree struct {
	points []string // where it acts here
	weight int32    // in upstream's default profile; 0: it does not score
	// always says why it cannot be disabled, but for its scores; empty: it can.
	always string
	// early tells that its preFilter rejects pods by itself, so that it cannot stay enabled without the filter.
	early bool
}

var (
	filters = []string{preFilter, filter}
	scores  = []string{preScore, score}
	both    = []string{preFilter, filter, preScore, score}
)

// upstream are all plugins that a file may name. Which of them exist is for exists to say.
var upstream = map[string]inTree{
	"SchedulingGates": {points: []string{preEnqueue}, always: "the API allows no pod with gates to be bound"},
	"PrioritySort":    {points: []string{queueSort}, always: "there is no other order of pods"},
	"DefaultBinder":   {points: []string{bind}, always: "nothing else binds pods"},
	"VolumeBinding": {
		points: []string{preFilter, filter, reserve, preBind, preScore, score}, weight: 1, always: "pods would start without their volumes",
	},
	"DynamicResources": {
		points: []string{preEnqueue, preFilter, filter, reserve, preBind, score}, weight: 2, always: "pods would start without their devices",
	},
	"DefaultPreemption":               {points: []string{preEnqueue, postFilter}},
	"NodeName":                        {points: filters},
	"NodeUnschedulable":               {points: filters},
	"NodePorts":                       {points: filters},
	"NodeDeclaredFeatures":            {points: filters},
	"NodeVolumeLimits":                {points: filters},
	"VolumeRestrictions":              {points: filters, early: true},
	"VolumeZone":                      {points: filters, early: true},
	"TaintToleration":                 {points: both, weight: 3},
	"NodeAffinity":                    {points: both, weight: 2, early: true},
	"NodeResourcesFit":                {points: both, weight: 1},
	"PodTopologySpread":               {points: both, weight: 2},
	"InterPodAffinity":                {points: both, weight: 2},
	"NodeResourcesBalancedAllocation": {points: scores, weight: 1},
	"ImageLocality":                   {points: []string{score}, weight: 1},
	"DeferredPodScheduling":           {},
	"GangScheduling":                  {},
	"TopologyPlacementGenerator":      {},
	"PodGroupPodsCount":               {},
}

// builtIn are plugins that are no plugins here, but parts of the scheduler.
var builtIn = []string{"SchedulingGates", "PrioritySort", "DefaultBinder", "DefaultPreemption"}

func exists(name string) bool {
	return slices.Contains(builtIn, name) ||
		slices.ContainsFunc(plugins.All(), func(p plugin.Plugin) bool { return p.Name() == name })
}

// pointSet is what a file says of one extension point.
type pointSet struct {
	point string
	configv1.PluginSet
}

func pointSets(p *configv1.Plugins) []pointSet {
	return []pointSet{
		{multiPoint, p.MultiPoint}, {preEnqueue, p.PreEnqueue}, {queueSort, p.QueueSort}, {preFilter, p.PreFilter}, {filter, p.Filter},
		{postFilter, p.PostFilter}, {preScore, p.PreScore}, {score, p.Score}, {reserve, p.Reserve}, {"permit", p.Permit},
		{preBind, p.PreBind}, {bind, p.Bind}, {"postBind", p.PostBind}, {"placementGenerate", p.PlacementGenerate},
		{"placementScore", p.PlacementScore}, {"podGroupPostFilter", p.PodGroupPostFilter},
	}
}

// check refuses names and weights that mean nothing at the extension point.
func (s pointSet) check(path *field.Path) error {
	seen := map[string]bool{}
	for i, p := range s.Enabled {
		known, ok := upstream[p.Name]
		path := path.Child(s.point, "enabled").Index(i)
		switch {
		case !ok:
			return notSupported(path.Child("name"), fmt.Sprintf("%q is not one of upstream's plugins", p.Name))
		case !exists(p.Name):
			return notSupported(path.Child("name"), p.Name+" does not exist in Setpoint")
		case s.point != multiPoint && !slices.Contains(known.points, s.point):
			return notSupported(path.Child("name"), fmt.Sprintf("%s does not act at %s", p.Name, s.point))
		case seen[p.Name]:
			return field.Duplicate(path.Child("name"), p.Name)
		case p.Weight != nil && (known.weight == 0 || s.point != multiPoint && s.point != score):
			return notSupported(path.Child("weight"), fmt.Sprintf("%s has no score at %s", p.Name, s.point))
		case p.Weight != nil && *p.Weight < 0:
			return field.Invalid(path.Child("weight"), *p.Weight, "must be 1 or more; 0 is 1")
		}
		seen[p.Name] = true
	}
	for i, p := range s.Disabled {
		path := path.Child(s.point, "disabled").Index(i)
		if _, ok := upstream[p.Name]; !ok && p.Name != "*" {
			return notSupported(path.Child("name"), fmt.Sprintf("%q is not one of upstream's plugins", p.Name))
		}
		if p.Weight != nil {
			return notSupported(path.Child("weight"), "what is disabled has no weight")
		}
	}
	return nil
}

func (s pointSet) enables(name string) (configv1.Plugin, bool) {
	for _, p := range s.Enabled {
		if p.Name == name {
			return p, true
		}
	}
	return configv1.Plugin{}, false
}

func (s pointSet) disables(name string) bool {
	return slices.ContainsFunc(s.Disabled, func(p configv1.Plugin) bool { return p.Name == name || p.Name == "*" })
}

// set is which plugins act, and how.
type set struct {
	filters, scores map[string]bool
	weights         map[string]int64
	preempts        bool
}

// defaultSet is that of upstream's default profile.
func defaultSet() set {
	s, _ := resolve(&configv1.Plugins{}, nil) // fails for what a file says only
	return s
}

// resolve works out which plugins act at which extension point, as upstream's framework does: what a point enables itself
// comes before what multiPoint enables there, and that before upstream's defaults; enabled wins over disabled.
func resolve(in *configv1.Plugins, path *field.Path) (set, error) {
	if in == nil {
		in = &configv1.Plugins{}
	}
	r := resolution{path: path, sets: map[string]pointSet{}}
	for _, s := range pointSets(in) {
		if err := s.check(path); err != nil {
			return set{}, err
		}
		r.sets[s.point] = s
	}
	found := set{filters: map[string]bool{}, scores: map[string]bool{}, weights: map[string]int64{}}
	for _, name := range sortedNames() {
		if !exists(name) {
			continue
		}
		if err := r.check(name); err != nil {
			return set{}, err
		}
		found.filters[name], found.scores[name], found.weights[name] = r.on(filter, name), r.on(score, name), r.weight(name)
	}
	found.preempts = r.on(postFilter, "DefaultPreemption")
	return found, nil
}

func sortedNames() []string {
	var names []string
	for name := range upstream {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// resolution is what a file says of all extension points.
type resolution struct {
	path *field.Path
	sets map[string]pointSet
}

// on tells whether a plugin acts at an extension point.
func (r *resolution) on(point, name string) bool {
	if _, ok := r.sets[point].enables(name); ok {
		return true
	}
	everywhere := r.sets[multiPoint]
	_, ok := everywhere.enables(name)
	return slices.Contains(upstream[name].points, point) && !r.sets[point].disables(name) && (ok || !everywhere.disables(name))
}

func (r *resolution) weight(name string) int64 {
	for _, point := range []string{score, multiPoint} {
		if p, ok := r.sets[point].enables(name); ok {
			if p.Weight == nil || *p.Weight == 0 {
				return 1
			}
			return int64(*p.Weight)
		}
	}
	return int64(upstream[name].weight)
}

// check refuses what cannot be disabled, and halves of what acts in two steps.
func (r *resolution) check(name string) error {
	known := upstream[name]
	off := func(point string) bool { return slices.Contains(known.points, point) && !r.on(point, name) }
	if known.always != "" {
		for _, point := range known.points {
			if !slices.Contains(scores, point) && off(point) {
				return notSupported(r.path.Child(point), fmt.Sprintf("%s must be enabled: %s", name, known.always))
			}
		}
	}
	switch {
	case off(preFilter) && r.on(filter, name):
		return notSupported(r.path.Child(preFilter), name+" is enabled at filter and needs it")
	case known.early && off(filter) && r.on(preFilter, name):
		return notSupported(r.path.Child(filter), name+" is enabled at preFilter, which rejects pods too: disable both")
	case off(preScore) && r.on(score, name):
		return notSupported(r.path.Child(preScore), name+" is enabled at score and needs it")
	case r.on(postFilter, name) && off(preEnqueue):
		return notSupported(r.path.Child(preEnqueue), name+" is enabled at postFilter and needs it")
	}
	return nil
}

// enabledPlugins lists the plugins that act; configured are those with args.
func enabledPlugins(s set, configured map[string]plugin.Plugin) []Plugin {
	var list []Plugin
	for _, p := range plugins.All() {
		name := p.Name()
		if c := configured[name]; c != nil {
			p = c
		}
		if e := (Plugin{Plugin: p, Filters: s.filters[name], Scores: s.scores[name], Weight: s.weights[name]}); e.Filters || e.Scores {
			list = append(list, e)
		}
	}
	return list
}
