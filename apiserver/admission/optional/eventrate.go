package optional

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
)

// bucketsMax is how many keys of a limit are remembered if the configuration does not say, as upstream. The one that was not used for the
// longest time is forgotten first.
const bucketsMax = 4096

// limitType says what has a bucket of its own, in upstream's words.
type limitType string

// eventRateFile is upstream's format.
type eventRateFile struct {
	metav1.TypeMeta `json:",inline"`

	Limits []eventLimit `json:"limits"`
}

type eventLimit struct {
	Type      limitType `json:"type"`
	QPS       int32     `json:"qps"`
	Burst     int32     `json:"burst"`
	CacheSize int32     `json:"cacheSize,omitempty"`
}

// keys say what each limit counts by.
var keys = map[limitType]func(admission.Attributes) string{
	"Server":          func(admission.Attributes) string { return "" },
	"Namespace":       admission.Attributes.GetNamespace,
	"User":            userOf,
	"SourceAndObject": func(a admission.Attributes) string { return sourceAndObject(a.GetObject()) },
}

// limitTypes are the same for messages, in order.
var limitTypes = []limitType{"Namespace", "Server", "SourceAndObject", "User"}

// eventRate refuses Events that come too fast, those of both groups.
type eventRate struct {
	onWrite
	limits []*bucketed
}

func newEventRate(c Config) (admission.Interface, error) {
	var file eventRateFile
	text := c.Configuration("EventRateLimit")
	if err := readVersioned(text, "eventratelimit.admission.k8s.io/v1alpha1", &file.TypeMeta, &file); err != nil {
		return nil, err
	}
	if err := file.validate().ToAggregate(); err != nil {
		return nil, err
	}
	var plugin eventRate
	for _, limit := range file.Limits {
		plugin.limits = append(plugin.limits, newBucketed(limit, c.Clock))
	}
	return plugin, nil
}

func (f eventRateFile) validate() (errs field.ErrorList) {
	path := field.NewPath("limits")
	if len(f.Limits) == 0 {
		errs = append(errs, field.Required(path, "--admission-control-config-file must have limits for this plugin"))
	}
	for i, limit := range f.Limits {
		at := path.Index(i)
		if keys[limit.Type] == nil {
			errs = append(errs, field.NotSupported(at.Child("type"), limit.Type, limitTypes))
		}
		for name, value := range map[string]int32{"qps": limit.QPS, "burst": limit.Burst} {
			if value <= 0 {
				errs = append(errs, field.Invalid(at.Child(name), value, "must be positive"))
			}
		}
		if limit.CacheSize < 0 {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), limit.CacheSize, "must not be negative"))
		}
	}
	return errs
}

// Validate implements admission.ValidationInterface.
func (e eventRate) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isEvent(a.GetObject()) || a.IsDryRun() {
		return nil
	}
	var refused []error
	for _, limit := range e.limits { // each counts each event, also one that another refuses
		refused = append(refused, limit.take(a))
	}
	if err := errors.Join(refused...); err != nil {
		return apierrors.NewTooManyRequestsError(strings.ReplaceAll(err.Error(), "\n", ", "))
	}
	return nil
}

func isEvent(obj runtime.Object) bool {
	switch obj.(type) {
	case *corev1.Event, *eventsv1.Event:
		return true
	}
	return false
}

// bucketed is a limit with a bucket for each key. It is safe for concurrent use.
type bucketed struct {
	limit   eventLimit
	clock   flowcontrol.Clock
	buckets *lru.Cache
}

func newBucketed(limit eventLimit, clock flowcontrol.Clock) *bucketed {
	size := int(limit.CacheSize)
	if size == 0 {
		size = bucketsMax
	}
	return &bucketed{limit: limit, clock: clock, buckets: lru.New(size)}
}

func (b *bucketed) take(a admission.Attributes) error {
	key := keys[b.limit.Type](a)
	bucket, found := b.buckets.Get(key)
	if !found {
		bucket = flowcontrol.NewTokenBucketRateLimiterWithClock(float32(b.limit.QPS), int(b.limit.Burst), b.clock)
		b.buckets.Add(key, bucket)
	}
	if !bucket.(flowcontrol.RateLimiter).TryAccept() {
		return fmt.Errorf("limit reached on type %v for key %v", b.limit.Type, key)
	}
	return nil
}

func userOf(a admission.Attributes) string {
	if a.GetUserInfo() == nil {
		return ""
	}
	return a.GetUserInfo().GetName()
}

// sourceAndObject is who tells something about which object.
func sourceAndObject(obj runtime.Object) string {
	switch e := obj.(type) {
	case *corev1.Event:
		return sourceKey(e.Source.Component, e.Source.Host, e.InvolvedObject)
	case *eventsv1.Event:
		return sourceKey(e.ReportingController, e.ReportingInstance, e.Regarding)
	}
	return ""
}

func sourceKey(component, host string, about corev1.ObjectReference) string {
	return strings.Join([]string{component, host, about.Kind, about.Namespace, about.Name, string(about.UID), about.APIVersion}, "")
}
