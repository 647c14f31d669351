package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// uncalled, byQuota, byWebhook and noAccount are the API's own words for who refused.
const uncalled = "failed calling webhook"

var (
	byQuota   = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.*), used: (.*), limited: (\S*)`)
	byWebhook = regexp.MustCompile(`(?:admission|failed calling) webhook "([^"]+)"`)
	noAccount = regexp.MustCompile(`serviceaccount "([^"]+)" not found`)
)

// refusal says who refused what a loop wrote, and what would let it through. missing is how many pods are wanted beyond those there.
func (e *explainer) refusal(name Object, owner metav1.Object, message string, missing int64) Cause {
	if m := byQuota.FindStringSubmatch(message); m != nil {
		quota := Quotas.Named(name.Namespace, m[1])
		return Cause{
			Object: quota, What: "the quota is used up: " + message, Change: "raise the quota, or delete what uses it",
			Command: patch(quota, "merge", fields(raised(m[2], m[3], m[4], missing), "spec", "hard")),
		}
	}
	if m := byWebhook.FindStringSubmatch(message); m != nil {
		return e.webhook(m[1], message)
	}
	if m := noAccount.FindStringSubmatch(message); m != nil {
		return Cause{
			Object: ServiceAccounts.Named(name.Namespace, m[1]), What: "the service account does not exist: " + message,
			Command: kubectl(name.Namespace, "create", "serviceaccount", m[1]),
		}
	}
	return Cause{Object: name, What: fmt.Sprintf("what the loop of %s writes is refused: %s", orName(owner), message)}
}

func orName(owner metav1.Object) string { return owner.GetNamespace() + "/" + owner.GetName() }

// raised is what a quota has to allow for the missing pods, of what it limits too tightly.
func raised(requested, used, limited string, missing int64) map[string]string {
	wanted, have, limits, next := amounts(requested), amounts(used), amounts(limited), map[string]string{}
	for name, sum := range have {
		for range min(missing, 1000) {
			sum.Add(wanted[name])
		}
		if limit, known := limits[name]; !known || sum.Cmp(limit) > 0 {
			next[name] = sum.String()
		}
	}
	return next
}

// amounts reads a list as in "pods=1,requests.cpu=500m".
func amounts(text string) map[string]resource.Quantity {
	all := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if amount, err := resource.ParseQuantity(value); err == nil {
			all[name] = amount
		}
	}
	return all
}

// webhook blames the configuration that has the webhook. One that cannot be called may be made to let everything through.
func (e *explainer) webhook(name, message string) Cause {
	for _, c := range list[*admissionregistrationv1.ValidatingWebhookConfiguration](e, ValidatingWebhooks, "") {
		if i := slices.IndexFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == name }); i >= 0 {
			return webhookCause(ValidatingWebhooks.of(c), name, i, message)
		}
	}
	for _, c := range list[*admissionregistrationv1.MutatingWebhookConfiguration](e, MutatingWebhooks, "") {
		if i := slices.IndexFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == name }); i >= 0 {
			return webhookCause(MutatingWebhooks.of(c), name, i, message)
		}
	}
	return Cause{
		Object: ValidatingWebhooks.Named("", name), What: "a webhook refused, and is not there any more: " + message,
		Change: "the loop tries again by itself",
	}
}

func webhookCause(configuration Object, name string, index int, message string) Cause {
	c := Cause{Object: configuration, What: fmt.Sprintf("the webhook %s refuses: %s", name, message)}
	c.Change = "make the object as the webhook wants it"
	if strings.Contains(message, uncalled) {
		c.What = fmt.Sprintf("the webhook %s cannot be called, and its failurePolicy is Fail: %s", name, message)
		c.Change = "bring the webhook's server back, or let requests pass while it is away:"
		c.Command = patch(configuration, "json", []operation{
			{"test", fmt.Sprintf("/webhooks/%d/name", index), name}, {"replace", fmt.Sprintf("/webhooks/%d/failurePolicy", index), "Ignore"},
		})
	}
	return c
}

// clearQuotas clears the quotas of a namespace that have room.
func (e *explainer) clearQuotas(f *finding, namespace, blamed string) {
	for _, quota := range firstOf(list[*corev1.ResourceQuota](e, Quotas, namespace)) {
		if quota.Name != blamed {
			f.clear(Quotas.of(quota), "it refused nothing: %s", usage(quota))
		}
	}
}

func usage(quota *corev1.ResourceQuota) string {
	var parts []string
	for name, hard := range quota.Status.Hard {
		used := quota.Status.Used[name]
		parts = append(parts, fmt.Sprintf("%s of %s %s are used", used.String(), hard.String(), name))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "it is not counted yet"
	}
	return strings.Join(parts, ", ")
}

// clearWebhooks clears the webhooks that did not refuse.
func (e *explainer) clearWebhooks(f *finding, blamed Object) {
	for _, kind := range []Kind{ValidatingWebhooks, MutatingWebhooks} {
		for _, configuration := range firstOf(e.List(kind, "")) {
			if o := kind.of(configuration); o != blamed {
				f.clear(o, "it is not the one that refused")
			}
		}
	}
}
