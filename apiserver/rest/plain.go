package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	registry "k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/managedfields"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// writeTimeout is how long a write may take, as upstream's.
const writeTimeout = 34 * time.Second

// plainWrites serves the most common writes of one kind: an ordinary Content-Type
// and Accept, no parameters but the field manager and the strictness of decoding, a
// body without a flaw. It does what upstream's handlers do, in the same order, on
// the goroutine of the request. Everything else, and all that is refused before
// admission has been asked, is upstream's, with the same bytes.
type plainWrites struct {
	store  *Store
	scope  *handlers.RequestScope
	admit  admission.Interface
	owners *managedfields.Owners

	codecs   serializer.CodecFactory
	encoders map[string]runtime.Encoder
	decoders map[decoding]runtime.Decoder
}

type decoding struct {
	contentType string
	strict      bool
}

func newPlainWrites(s *Store, scope *handlers.RequestScope, config Config, reset string) *plainWrites {
	kind := s.kind.GroupVersionKind
	p := &plainWrites{
		store: s, scope: scope, codecs: config.Codecs, admit: admission.WithAudit(config.Admission),
		owners: managedfields.New(managedfields.Config{
			Kind: kind, New: s.kind.New, Upstream: scope.FieldManager, Converter: config.TypeConverter, Reset: reset,
		}),
		encoders: map[string]runtime.Encoder{}, decoders: map[decoding]runtime.Decoder{},
	}
	gv := kind.GroupVersion()
	for _, info := range config.Codecs.SupportedMediaTypes() {
		if info.MediaType != runtime.ContentTypeJSON && info.MediaType != runtime.ContentTypeProtobuf {
			continue
		}
		p.encoders[info.MediaType] = config.Codecs.EncoderForVersion(info.Serializer, gv)
		p.decoders[decoding{info.MediaType, false}] = config.Codecs.DecoderToVersion(info.Serializer, gv)
		p.decoders[decoding{info.MediaType, true}] = config.Codecs.DecoderToVersion(info.StrictSerializer, gv)
	}
	return p
}

// plainWrite is one request, read.
type plainWrite struct {
	*plainWrites
	w http.ResponseWriter
	r *http.Request
	// info names the object as the path does; user may be nil.
	info   *request.RequestInfo
	user   user.Info
	accept string // the content type of the answer
	obj    resource.Object
	// manager owns what is written; the other two are the client's parameters.
	manager, fieldManager, fieldValidation string
}

// read reads a request, or leaves it as it was for upstream and returns false.
func (p *plainWrites) read(w http.ResponseWriter, r *http.Request) (*plainWrite, bool) {
	contentType, accept := soleHeader(r, "Content-Type"), plainAccepts[soleHeader(r, "Accept")]
	if accept == "" || readByPeople(r) {
		return nil, false
	}
	fieldManager, fieldValidation, plain := plainOptions(r)
	decoder, known := p.decoders[decoding{contentType, fieldValidation != metav1.FieldValidationIgnore}]
	info, resolved := request.RequestInfoFrom(r.Context())
	if !plain || !known || !resolved {
		return nil, false
	}
	body, whole := readWhole(r)
	if !whole {
		return nil, false
	}
	obj, ok := p.decode(decoder, body)
	if !ok || !fits(info, p.scope, obj) {
		restore(r, body)
		return nil, false
	}
	audit.LogRequestObject(r.Context(), obj, p.scope.Kind.GroupVersion(), p.scope.Resource, "", p.codecs)
	who, _ := request.UserFrom(r.Context())
	return &plainWrite{
		plainWrites: p, w: w, r: r, info: info, user: who, accept: accept, obj: obj,
		manager: managerOf(fieldManager, r.UserAgent()), fieldManager: fieldManager, fieldValidation: fieldValidation,
	}, true
}

func soleHeader(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// plainOptions returns the two parameters that clients send with ordinary writes.
func plainOptions(r *http.Request) (fieldManager, fieldValidation string, plain bool) {
	if r.URL.RawQuery == "" {
		return "", "", true
	}
	for name, values := range r.URL.Query() {
		switch {
		case len(values) != 1:
			return "", "", false
		case name == "fieldManager":
			fieldManager = values[0]
		case name == "fieldValidation":
			fieldValidation = values[0]
		default:
			return "", "", false
		}
	}
	errs := validation.ValidateCreateOptions(&metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: fieldValidation})
	return fieldManager, fieldValidation, len(errs) == 0
}

// readWhole reads the body. One that is too large, or breaks off, is left for
// upstream to refuse.
func readWhole(r *http.Request) (body []byte, whole bool) {
	if r.ContentLength > MaxBodyBytes {
		return nil, false
	}
	var b bytes.Buffer
	b.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(r.Body, MaxBodyBytes+1))
	if err != nil || b.Len() > MaxBodyBytes {
		restore(r, b.Bytes())
		return nil, false
	}
	return b.Bytes(), true
}

// restore puts what was read before the rest of the body.
func restore(r *http.Request, body []byte) {
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
}

// fits reports whether the body names no other object than the path does.
func fits(info *request.RequestInfo, scope *handlers.RequestScope, obj resource.Object) bool {
	namespace := registry.ExpectedNamespaceForResource(info.Namespace, scope.Resource)
	return (info.Name == "" || info.Name == obj.GetName()) && (obj.GetNamespace() == "" || obj.GetNamespace() == namespace)
}

// decode returns the object of a body that upstream would take without a warning.
func (p *plainWrites) decode(decoder runtime.Decoder, body []byte) (resource.Object, bool) {
	decoded, kind, err := decoder.Decode(body, &p.scope.Kind, p.store.New())
	if err != nil || kind == nil || !p.scope.AcceptsGroupVersion(kind.GroupVersion()) {
		return nil, false
	}
	obj, ok := decoded.(resource.Object)
	return obj, ok && !repeatsOwners(obj)
}

// managerOf is the name under which a client owns fields: what it says, or the
// printable beginning of what its program calls itself.
func managerOf(fieldManager, agent string) string {
	if fieldManager != "" {
		return fieldManager
	}
	name, _, _ := strings.Cut(agent, "/")
	var b strings.Builder
	for _, letter := range name {
		if !unicode.IsPrint(letter) {
			continue
		}
		if b.Len()+utf8.RuneLen(letter) > validation.FieldManagerMaxLength {
			break
		}
		b.WriteRune(letter)
	}
	return b.String()
}

// answer writes the outcome. A write whose time was up has timed out, whatever else failed.
func (p *plainWrite) answer(ctx context.Context, status int, obj runtime.Object, err error) {
	gv := p.scope.Kind.GroupVersion()
	if err != nil {
		if ctx.Err() != nil {
			err = apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", ctx.Err()), 0)
		}
		responsewriters.ErrorNegotiated(err, p.codecs, gv, p.w, p.r)
		return
	}
	audit.LogResponseObject(p.r.Context(), obj, gv, p.codecs)
	allocator := runtime.AllocatorPool.Get().(*runtime.Allocator)
	defer runtime.AllocatorPool.Put(allocator)
	encoder := p.encoders[p.accept]
	if e, ok := encoder.(runtime.EncoderWithAllocator); ok {
		encoder = runtime.NewEncoderWithAllocator(e, allocator)
	}
	out := &smallAnswer{w: p.w, contentType: p.accept, status: status}
	if err := encoder.Encode(obj, out); err != nil && !out.begun {
		responsewriters.WriteObjectNegotiated(p.codecs, p.scope, gv, p.w, p.r, status, obj, false)
	}
}

var errLargeAnswer = errors.New("rest: upstream compresses an answer of this size")

// smallAnswer writes an encoded object, unless upstream might compress it.
type smallAnswer struct {
	w           http.ResponseWriter
	contentType string
	status      int
	begun       bool
}

func (a *smallAnswer) Write(text []byte) (int, error) {
	if !a.begun {
		if len(text) > compressedFromBytes {
			return 0, errLargeAnswer
		}
		a.begun = true
		a.w.Header().Set("Content-Type", a.contentType)
		a.w.WriteHeader(a.status)
	}
	return a.w.Write(text)
}
