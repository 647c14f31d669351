package differential

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// claimsWorld are pods with devices: of claims from a template, which comes and goes, and of claims of the user's.
type claimsWorld struct {
	plain
	pods int
}

// made are claims of pods and their names in the status of pods.
var made = regexp.MustCompile(`(?m)^  claim pod-.*\n| t-[01]=[^ ]* there=(true|false)`)

// excuse: upstream keeps what it has made in a cache of its own for an hour, in which a claim that is deleted is still there.
func (l *claimsWorld) excuse(ours, upstream string) string {
	lacks := strings.Contains(upstream, "there=false") && !strings.Contains(ours, "there=false")
	if lacks && made.ReplaceAllString(ours, "") == made.ReplaceAllString(upstream, "") {
		return "upstream makes a claim that was deleted again when it has forgotten it, after an hour"
	}
	return ""
}

func newClaims(*generator) workload { return &claimsWorld{} }

func (l *claimsWorld) create(w *world) {
	l.templateComes(w)
	for _, name := range []string{"c-0", "c-1"} {
		create(w, w.Client.ResourceV1().ResourceClaims(w.namespace), &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}})
	}
}

func (l *claimsWorld) templateComes(w *world) {
	_, _ = w.Client.ResourceV1().ResourceClaimTemplates(w.namespace).Create(context.Background(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "t", Namespace: w.namespace},
		Spec:       resourcev1.ResourceClaimTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"}}},
	}, metav1.CreateOptions{})
}

func (l *claimsWorld) edit(g *generator) (string, func(w *world)) {
	seed := g.Uint64()
	switch g.IntN(8) {
	case 0:
		return "template goes", func(w *world) {
			_ = w.Client.ResourceV1().ResourceClaimTemplates(w.namespace).Delete(context.Background(), "t", metav1.DeleteOptions{})
		}
	case 1:
		return "template comes", l.templateComes
	case 2, 3:
		return "claims are allocated", func(w *world) { allocateClaims(w, newGenerator(seed)) }
	case 4:
		return "claims are deleted", func(w *world) { deleteClaims(w, newGenerator(seed)) }
	default:
		l.pods++
		p := devicePod(g, l.pods)
		return "pod " + p.Name, func(w *world) {
			p := p.DeepCopy()
			p.Namespace, p.UID = w.namespace, types.UID(w.namespace+p.Name)
			reconciletest.Add(w.World, p)
		}
	}
}

// ends: pods do not end, unless they are deleted. Of a pod that has ended and whose claim was deleted for that, upstream makes
// and deletes the claim again and again.
func (l *claimsWorld) ends() (end, succeed float64) { return 0, 0 }

// devicePod is a pod with up to two claims of the template and up to two of the user's.
func devicePod(g *generator, n int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", n)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: p.Name}} // pods are told apart by it
	for i := range 2 {
		if !g.chance(3) {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("t-%d", i), ResourceClaimTemplateName: new("t")})
		}
		if g.chance(3) {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("c-%d", i), ResourceClaimName: new(fmt.Sprintf("c-%d", i))})
		}
	}
	if g.chance(5) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c-1"}
	}
	if g.chance(4) {
		p.Finalizers = []string{"test/keep"}
	}
	return p
}

// claims are all of the namespace, in the same order on both sides.
func (w *world) claims() []resourcev1.ResourceClaim {
	list, err := w.Client.ResourceV1().ResourceClaims(w.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b resourcev1.ResourceClaim) int { return strings.Compare(claimLabel(&a), claimLabel(&b)) })
	return list.Items
}

// claimLabel tells claims apart, of which the generated part of the name is chance.
func claimLabel(c *resourcev1.ResourceClaim) string {
	if c.GenerateName == "" {
		return c.Name
	}
	return c.GenerateName + "*"
}

// allocateClaims is what a scheduler does: some claims get devices, some with users, of which some do not exist.
func allocateClaims(w *world, g *generator) {
	for _, c := range w.claims() {
		allocate, users, protect := g.chance(2), g.IntN(4), !g.chance(5)
		if !allocate || c.DeletionTimestamp != nil || c.Status.Allocation != nil {
			continue
		}
		claims := w.Client.ResourceV1().ResourceClaims(w.namespace)
		if protect {
			change(w, claims, c.Name, func(c *resourcev1.ResourceClaim) { c.Finalizers = []string{resourcev1.Finalizer} })
		}
		changeStatus(w, claims, c.Name, func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation = &resourcev1.AllocationResult{}
			for i := range users {
				name := fmt.Sprintf("pod-%d", i+1)
				c.Status.ReservedFor = append(c.Status.ReservedFor,
					resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(w.namespace + name)})
			}
			if users == 2 {
				c.Status.ReservedFor[0].Resource = "others"
			}
		})
	}
}

func deleteClaims(w *world, g *generator) {
	for _, c := range w.claims() {
		user, generated := g.chance(3), g.chance(15)
		if c.GenerateName == "" && user || c.GenerateName != "" && generated {
			_ = w.Client.ResourceV1().ResourceClaims(w.namespace).Delete(context.Background(), c.Name, metav1.DeleteOptions{})
		}
	}
}

// actTime lets a pod that ends find its claims made.
func (l *claimsWorld) actTime() time.Duration { return time.Second }

func (l *claimsWorld) describe(w *world, out *strings.Builder) {
	labels := map[string]string{}
	for _, c := range w.claims() {
		labels[c.Name] = claimLabel(&c)
		var users []string
		for _, u := range c.Status.ReservedFor {
			users = append(users, u.Resource+"/"+u.Name)
		}
		slices.Sort(users)
		fmt.Fprintf(out, "  claim %s labels=%v annotations=%v owners=%d finalizers=%v allocated=%v users=%v deleted=%v\n", claimLabel(&c), c.Labels,
			c.Annotations, len(c.OwnerReferences), c.Finalizers, c.Status.Allocation != nil, users, c.DeletionTimestamp != nil)
	}
	for _, p := range w.ordered() {
		fmt.Fprintf(out, "  %s %s", p.Name, look(&p))
		for _, s := range p.Status.ResourceClaimStatuses {
			name, there := labels[*s.ResourceClaimName]
			fmt.Fprintf(out, " %s=%s there=%v", s.Name, name, there)
		}
		out.WriteString("\n")
	}
}
