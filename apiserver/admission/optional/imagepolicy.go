package optional

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	// verdictsMax is how many answers of the webhook are remembered, as upstream.
	verdictsMax = 1024
	// policyDomain ends the prefix of annotations that the webhook is told of.
	policyDomain = ".image-policy.k8s.io/"
	// auditPrefix begins the keys of what the webhook says to the audit log.
	auditPrefix = "imagepolicywebhook" + policyDomain
	// failedOpen is the annotation of a pod that nobody has judged.
	failedOpen = "alpha.image-policy.k8s.io/failed-open"
)

// Upstream's limits and defaults of the configuration.
const (
	allowTTLDefault     = 5 * time.Minute
	denyTTLDefault      = 30 * time.Second
	verdictTTLMax       = 30 * time.Minute
	retryBackoffDefault = 500 * time.Millisecond
	retryBackoffMax     = 5 * time.Minute
)

// imagePolicyFile is upstream's format: seconds, and milliseconds for the backoff; 0 is the default, -1 none.
type imagePolicyFile struct {
	ImagePolicy struct {
		KubeConfigFile string `json:"kubeConfigFile"`
		AllowTTL       int64  `json:"allowTTL"`
		DenyTTL        int64  `json:"denyTTL"`
		RetryBackoff   int64  `json:"retryBackoff"`
		DefaultAllow   bool   `json:"defaultAllow"`
	} `json:"imagePolicy"`
}

// imagePolicy asks a webhook about the images of each pod.
type imagePolicy struct {
	onWrite
	hook              *webhook.GenericWebhook
	verdicts          *cache.LRUExpireCache
	allowTTL, denyTTL time.Duration
	defaultAllow      bool
}

func newImagePolicy(c Config) (admission.Interface, error) {
	text := c.Configuration("ImagePolicyWebhook")
	if len(text) == 0 {
		return nil, errors.New("--admission-control-config-file must have its configuration")
	}
	var file imagePolicyFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	config := file.ImagePolicy
	plugin := imagePolicy{verdicts: cache.NewLRUExpireCache(verdictsMax), defaultAllow: config.DefaultAllow}
	backoff, err := duration("retryBackoff", config.RetryBackoff, time.Millisecond, retryBackoffDefault, retryBackoffMax)
	errs := []error{err}
	plugin.allowTTL, err = duration("allowTTL", config.AllowTTL, time.Second, allowTTLDefault, verdictTTLMax)
	errs = append(errs, err)
	plugin.denyTTL, err = duration("denyTTL", config.DenyTTL, time.Second, denyTTLDefault, verdictTTLMax)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	plugin.hook, err = newImageHook(config.KubeConfigFile, backoff)
	return plugin, err
}

// duration reads a number of units.
func duration(name string, n int64, unit, without, limit time.Duration) (time.Duration, error) {
	switch {
	case n == 0:
		return without, nil
	case n == -1:
		return 0, nil
	case n < 0 || n > int64(limit/unit):
		return 0, fmt.Errorf("%s: %d must be -1 to %d", name, n, limit/unit)
	}
	return time.Duration(n) * unit, nil
}

func newImageHook(kubeconfig string, backoff time.Duration) (*webhook.GenericWebhook, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	client, err := webhook.LoadKubeconfig(kubeconfig, nil)
	if err != nil {
		return nil, fmt.Errorf("kubeConfigFile: %w", err)
	}
	return webhook.NewGenericWebhook(scheme, serializer.NewCodecFactory(scheme), client,
		[]schema.GroupVersion{v1alpha1.SchemeGroupVersion}, webhook.DefaultRetryBackoffWithInitialDelay(backoff))
}

// Validate implements admission.ValidationInterface.
func (p imagePolicy) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	images, judged := imagesOf(pod, a.GetSubresource())
	if !judged {
		return nil
	}
	spec := v1alpha1.ImageReviewSpec{Containers: images, Annotations: policyAnnotations(pod), Namespace: a.GetNamespace()}
	verdict, err := p.ask(ctx, spec)
	if err != nil {
		return p.unanswered(a, pod, err)
	}
	for key, value := range verdict.AuditAnnotations {
		if err := a.AddAnnotation(auditPrefix+key, value); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return refusal(a, verdict)
}

// imagesOf are what a request brings along, if it can bring images at all.
func imagesOf(pod *corev1.Pod, subresource string) (images []v1alpha1.ImageReviewContainerSpec, judged bool) {
	switch subresource {
	case "":
		for _, c := range pod.Spec.Containers {
			images = append(images, v1alpha1.ImageReviewContainerSpec{Image: c.Image})
		}
		for _, c := range pod.Spec.InitContainers {
			images = append(images, v1alpha1.ImageReviewContainerSpec{Image: c.Image})
		}
	case "ephemeralcontainers":
		for _, c := range pod.Spec.EphemeralContainers {
			images = append(images, v1alpha1.ImageReviewContainerSpec{Image: c.Image})
		}
	default:
		return nil, false
	}
	return images, true
}

// policyAnnotations are those of a pod that are for the webhook.
func policyAnnotations(pod *corev1.Pod) map[string]string {
	kept := map[string]string{}
	for key, value := range pod.Annotations {
		if strings.Contains(key, policyDomain) {
			kept[key] = value
		}
	}
	return kept
}

// ask returns the webhook's verdict, or what it said of the same a while ago.
func (p imagePolicy) ask(ctx context.Context, spec v1alpha1.ImageReviewSpec) (v1alpha1.ImageReviewStatus, error) {
	key, err := json.Marshal(spec)
	if err != nil {
		return v1alpha1.ImageReviewStatus{}, err
	}
	if kept, found := p.verdicts.Get(string(key)); found {
		return kept.(v1alpha1.ImageReviewStatus), nil
	}
	review := &v1alpha1.ImageReview{Spec: spec}
	answer := p.hook.WithExponentialBackoff(ctx, func() rest.Result { return p.hook.RestClient.Post().Body(review).Do(ctx) })
	if err := answer.Error(); err != nil {
		return review.Status, err
	}
	var code int
	if answer.StatusCode(&code); code < http.StatusOK || code >= http.StatusMultipleChoices {
		return review.Status, fmt.Errorf("error contacting webhook: %d", code)
	}
	if err := answer.Into(review); err != nil {
		return review.Status, err
	}
	ttl := p.denyTTL
	if review.Status.Allowed {
		ttl = p.allowTTL
	}
	p.verdicts.Add(string(key), review.Status, ttl)
	return review.Status, nil
}

// unanswered is what becomes of a pod that the webhook has not judged.
func (p imagePolicy) unanswered(a admission.Attributes, pod *corev1.Pod, err error) error {
	if !p.defaultAllow {
		return admission.NewForbidden(a, err)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[failedOpen] = "true"
	return a.AddAnnotation(auditPrefix+"failed-open", "true")
}

func refusal(a admission.Attributes, verdict v1alpha1.ImageReviewStatus) error {
	switch {
	case verdict.Allowed:
		return nil
	case verdict.Reason != "":
		return admission.NewForbidden(a, fmt.Errorf("image policy webhook backend denied one or more images: %s", verdict.Reason))
	default:
		return admission.NewForbidden(a, errors.New("one or more images rejected by webhook backend"))
	}
}
