package flowcontrol

import (
	"cmp"
	"math"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// concurrencyLimit is how many requests of clients execute at once on one server, those
// of exempt levels not counted: what upstream allows reads and writes together.
const concurrencyLimit = 600

// defaultShares are those of a level that does not say, as upstream.
const defaultShares = 30

// plan is what all schemas and levels together say. Nobody changes it.
type plan struct {
	// schemas in the order in which they are asked.
	schemas []*schema
	levels  map[string]*level
}

// schema is a FlowSchema whose level exists.
type schema struct {
	*flowcontrolv1.FlowSchema
	level *level
	// uid and levelUID are values of headers, shared by all answers.
	uid, levelUID []string
}

// newPlan keeps the levels of former, with all who wait there. What is mandatory is there
// even where nobody has made it yet.
func newPlan(former *plan, schemas []*flowcontrolv1.FlowSchema, levels []*flowcontrolv1.PriorityLevelConfiguration) *plan {
	schemas = withMandatory(schemas, bootstrap.MandatoryFlowSchemas)
	levels = withMandatory(levels, bootstrap.MandatoryPriorityLevelConfigurations)
	p, uids := &plan{levels: map[string]*level{}}, map[string][]string{}
	total := totalShares(levels)
	for _, l := range levels {
		kept := former.level(l.Name)
		kept.configure(l, seats(l, total))
		p.levels[l.Name], uids[l.Name] = kept, []string{string(l.UID)}
	}
	for _, s := range schemas {
		if l := p.levels[s.Spec.PriorityLevelConfiguration.Name]; l != nil {
			p.schemas = append(p.schemas, &schema{FlowSchema: s, level: l, uid: []string{string(s.UID)}, levelUID: uids[l.name]})
		}
	}
	slices.SortFunc(p.schemas, func(a, b *schema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
	})
	return p
}

// level returns the one of this name, or a new one.
func (p *plan) level(name string) *level {
	if p != nil && p.levels[name] != nil {
		return p.levels[name]
	}
	return newLevel(name)
}

func withMandatory[T interface{ GetName() string }](have, mandatory []T) []T {
	all := slices.Clone(have)
	for _, m := range mandatory {
		if !slices.ContainsFunc(have, func(h T) bool { return h.GetName() == m.GetName() }) {
			all = append(all, m)
		}
	}
	return all
}

func totalShares(levels []*flowcontrolv1.PriorityLevelConfiguration) (total int32) {
	for _, l := range levels {
		total += sharesOf(l)
	}
	return total
}

func sharesOf(l *flowcontrolv1.PriorityLevelConfiguration) int32 {
	switch {
	case l.Spec.Limited != nil && l.Spec.Limited.NominalConcurrencyShares != nil:
		return *l.Spec.Limited.NominalConcurrencyShares
	case l.Spec.Limited != nil:
		return defaultShares
	case l.Spec.Exempt != nil && l.Spec.Exempt.NominalConcurrencyShares != nil:
		return *l.Spec.Exempt.NominalConcurrencyShares
	default:
		return 0
	}
}

// seats are the nominal concurrency of a level, rounded up as upstream does.
func seats(l *flowcontrolv1.PriorityLevelConfiguration, total int32) int {
	if total == 0 {
		return 0
	}
	return int(math.Ceil(concurrencyLimit * float64(sharesOf(l)) / float64(total)))
}

// classify finds the schema of a request. The last one, catch-all, takes everybody; for
// a user without the groups that all have, it is taken without being asked.
func (p *plan) classify(who user.Info, info *request.RequestInfo) *schema {
	for _, s := range p.schemas {
		if matches(s.FlowSchema, who, info) {
			return s
		}
	}
	return p.schemas[len(p.schemas)-1]
}
