package auditlog

import (
	"maps"
	"slices"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"github.com/setpoint-io/setpoint/internal/clip"
)

const (
	// textBytesMax is how much of one text of a request is recorded, textsMax how many of a list: groups, addresses on the way, extras.
	// What a policy asks for of bodies is recorded whole: requests have at most rest.MaxBodyBytes.
	textBytesMax = 4 << 10
	textsMax     = 100
)

// bounded passes on events of which each text is cut.
type bounded struct{ audit.Sink }

// ProcessEvents implements audit.Sink. The events are of the requests that go on: it changes copies.
func (b bounded) ProcessEvents(events ...*auditapi.Event) bool {
	short := make([]*auditapi.Event, len(events))
	for i, event := range events {
		short[i] = boundedEvent(event)
	}
	return b.Sink.ProcessEvents(short...)
}

func boundedEvent(event *auditapi.Event) *auditapi.Event {
	e := *event
	for _, text := range []*string{(*string)(&e.AuditID), &e.RequestURI, &e.Verb, &e.UserAgent} {
		*text = clip.Text(*text, textBytesMax)
	}
	e.SourceIPs = clip.List(e.SourceIPs, textsMax, textBytesMax)
	e.User = boundedUser(e.User)
	if e.ImpersonatedUser != nil {
		who := boundedUser(*e.ImpersonatedUser)
		e.ImpersonatedUser = &who
	}
	if e.ObjectRef != nil {
		ref := *e.ObjectRef
		for _, text := range []*string{
			&ref.Resource, &ref.Namespace, &ref.Name, (*string)(&ref.UID), &ref.APIGroup, &ref.APIVersion, &ref.ResourceVersion, &ref.Subresource,
		} {
			*text = clip.Text(*text, textBytesMax)
		}
		e.ObjectRef = &ref
	}
	if e.ResponseStatus != nil {
		e.ResponseStatus = boundedStatus(e.ResponseStatus)
	}
	e.Annotations = boundedMap(e.Annotations, func(text string) string { return clip.Text(text, textBytesMax) })
	return &e
}

func boundedUser(who authnv1.UserInfo) authnv1.UserInfo {
	who.Username, who.UID = clip.Text(who.Username, textBytesMax), clip.Text(who.UID, textBytesMax)
	who.Groups = clip.List(who.Groups, textsMax, textBytesMax)
	who.Extra = boundedMap(who.Extra, func(texts authnv1.ExtraValue) authnv1.ExtraValue {
		return clip.List(texts, textsMax, textBytesMax)
	})
	return who
}

// boundedStatus has no details when its message was cut: they say the same.
func boundedStatus(status *metav1.Status) *metav1.Status {
	s := *status
	s.Message, s.Reason = clip.Text(s.Message, textBytesMax), metav1.StatusReason(clip.Text(string(s.Reason), textBytesMax))
	if len(s.Message) != len(status.Message) {
		s.Details = nil
	}
	return &s
}

// boundedMap has the first textsMax entries, by their names.
func boundedMap[V any](texts map[string]V, short func(V) V) map[string]V {
	if texts == nil {
		return nil
	}
	clipped := make(map[string]V, min(len(texts), textsMax))
	names := slices.Sorted(maps.Keys(texts))
	for _, name := range names[:min(len(names), textsMax)] {
		clipped[clip.Text(name, textBytesMax)] = short(texts[name])
	}
	return clipped
}
