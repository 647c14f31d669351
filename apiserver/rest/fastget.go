package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

var errNoRequestInfo = errors.New("rest: the request was not resolved")

// plainAccepts are the Accept headers of ordinary clients, and what they get.
var plainAccepts = map[string]string{
	runtime.ContentTypeJSON:                                     runtime.ContentTypeJSON,
	runtime.ContentTypeJSON + ", */*":                           runtime.ContentTypeJSON,
	runtime.ContentTypeProtobuf:                                 runtime.ContentTypeProtobuf,
	runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON: runtime.ContentTypeProtobuf,
	runtime.ContentTypeProtobuf + ", */*":                       runtime.ContentTypeProtobuf,
}

// compressedFromBytes is the size from which upstream compresses answers.
const compressedFromBytes = 128 << 10

// fastGet answers the most common read from the object's cached bytes: an ordinary
// Accept, no parameters, an object that exists and is not large. Everything else is
// upstream's, with the same bytes.
func (s *Store) fastGet(codecs runtime.NegotiatedSerializer, audited bool, next http.HandlerFunc) http.HandlerFunc {
	encoders := map[string]runtime.Encoder{}
	for _, info := range codecs.SupportedMediaTypes() {
		encoders[info.MediaType] = codecs.EncoderForVersion(info.Serializer, s.kind.GroupVersionKind.GroupVersion())
	}
	return func(w http.ResponseWriter, r *http.Request) {
		contentType, plain := plainAccepts[r.Header.Get("Accept")]
		if !plain || r.Method != http.MethodGet || r.URL.RawQuery != "" || len(r.Header.Values("Accept")) > 1 || readByPeople(r) || audited && recordsAnswer(r) {
			next(w, r)
			return
		}
		answer := s.read(r)
		text := answer.bytes(encoders[contentType])
		if text == nil || len(text) > compressedFromBytes {
			next(w, r.WithContext(context.WithValue(r.Context(), answerKey{}, answer)))
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(text) // the client has gone, if this fails
	}
}

// recordsAnswer: upstream gives the object to the audit log.
func recordsAnswer(r *http.Request) bool {
	return audit.AuditContextFrom(r.Context()).GetEventLevel() == auditapi.LevelRequestResponse
}

// readByPeople: tools by whose name upstream indents its JSON.
func readByPeople(r *http.Request) bool {
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// answer is what a read found. Where upstream writes the response it travels in
// the context, so that nothing is read twice.
type answer struct {
	cached *storage.Cached
	err    error
}

type answerKey struct{}

func (s *Store) read(r *http.Request) answer {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		return answer{err: errNoRequestInfo}
	}
	namespace := info.Namespace
	if s.kind.ClusterScoped {
		namespace = ""
	}
	cached, err := s.table.Get(r.Context(), namespace, info.Name, "")
	return answer{cached, err}
}

// bytes returns the encoded object, or nil where upstream shall answer.
func (a answer) bytes(encoder runtime.Encoder) []byte {
	if a.err != nil {
		return nil
	}
	var kept keeper
	if err := encoder.Encode(a.cached, &kept); err != nil {
		return nil
	}
	return kept
}

// keeper keeps the one slice that a cached object writes, without a copy.
type keeper []byte

func (k *keeper) Write(b []byte) (int, error) {
	*k = b
	return len(b), nil
}
